// Active memory timeline: allocated memory over the requests of the run, stacked by a property of blocks, down to the
// single event.

import type { App, View } from "../app";
import { aligned, mostAligned } from "../data/align";
import { groups, KEYS, type Groups, type Key } from "../data/groups";
import type { Run } from "../data/run";
import { Stack } from "../data/stack";
import { Filter } from "../data/filter";
import { onFrame, steps, Surface } from "../draw/canvas";
import { Picture, Shades, type Window } from "../draw/picture";
import { blockTable, facts, panel, title, when } from "../ui/block";
import { choice, h, replace, table } from "../ui/dom";
import { bytes, commaAfter, commaBefore, count, duration, percent, plural, request, tick, ticks, words } from "../ui/format";
import { rest, variable } from "../ui/palette";

/** The rows of the table of blocks. */
const MAX_ROWS = 25;
/** The blocks that are put together for the table. */
const MOST_BLOCKS = 1000;
/** The recorded failures that are marked. */
const MAX_FAILURES = 50;
/** The phases of the list. */
const MAX_PHASES = 400;
/** The fewest moments that a window shows. */
const FEWEST = 8;

export function timeline(app: App): View {
  return new Timeline(app);
}

/** The text of a mark, in pixels. */
interface Label {
  text: string;
  x: number;
  y: number;
  width: number;
}

class Timeline implements View {
  readonly root: HTMLElement;
  private run: Run;
  private stackKey: Key = "role";
  /** As they are, and with what is left out as a group of its own. */
  private all: Groups;
  private groups: Groups;
  private stack: Stack;
  private filter: Filter;
  private window: Window = { from: 0, to: 1 };
  private cursor: number | null = null;
  private hovered: number | null = null;
  /** Another run that is drawn over this one, and where its moments are. */
  private other: { run: Run; at: (moment: number) => number | null } | null = null;
  private picture = new Picture(1, 1);
  /** The top of the plot, in bytes. */
  private top = 1;
  private labels: Label[] = [];
  private shades = new Shades(["#000000"], "#ffffff", "#000000");
  private readonly plot = new Surface("Allocated memory over the requests of the run. The table below has its blocks.");
  private readonly lines = new Surface(null);
  private readonly strip = new Surface(null);
  private readonly axis = new Surface(null);
  private readonly brush = new Surface(null);
  private readonly place: HTMLElement;
  private readonly tooltip = h("div", { class: "tooltip", hidden: true, role: "presentation" });
  private readonly legend = h("div", { class: "legend", role: "group", aria: { label: "Groups: press one to leave it out" } });
  private readonly status = h("p", { class: "status", id: "timeline-status", aria: { live: "polite" } });
  private readonly parts = h("div");
  private readonly below = h("div");
  private readonly search = h("input", { type: "search", id: "search", placeholder: "Operator, module, line, rule   /" });
  private readonly within = h("input", { type: "number", id: "freed-within", min: 1, step: 1, placeholder: "any" });
  private readonly least = h("input", { type: "number", id: "least-size", min: 0, step: "any", placeholder: "0" });
  private readonly phase = h("select", { id: "phase" });
  private readonly hidden = new Set<number>();
  private readonly ask = onFrame(() => this.paint());
  /** Milliseconds that the last picture took. */
  painted = 0;

  constructor(private readonly app: App) {
    this.run = app.run;
    this.all = groups(this.run, this.stackKey);
    this.groups = this.all;
    this.filter = new Filter(this.run);
    this.stack = this.stacked();
    this.place = h("div", { class: "plot", tabindex: 0, role: "application", aria: { label: "Timeline. Arrow keys move, plus and minus zoom, 0 shows all, p the peak, comma and period the events one by one, Enter chooses the largest block.", describedby: "timeline-status" } }, this.plot.canvas, this.lines.canvas, this.tooltip);
    this.plot.canvas.className = "base";
    this.lines.canvas.className = "over";
    this.axis.canvas.className = "axis";
    this.strip.canvas.className = "strip";
    this.brush.canvas.className = "brush";
    const keys = h("div", {});
    keys.append(choice("Stack by", KEYS, this.stackKey, (key) => this.stackBy(key)));
    this.root = h(
      "div",
      { class: "timeline" },
      h(
        "div",
        { class: "controls" },
        keys,
        h("label", { class: "field" }, h("span", {}, "Zoom to"), this.phase),
        h("label", { class: "field grow" }, h("span", {}, "Search"), this.search),
        h("label", { class: "field" }, h("span", {}, "Freed within requests"), this.within),
        h("label", { class: "field" }, h("span", {}, "At least MiB"), this.least),
        h(
          "div",
          { class: "buttons" },
          this.button("Peak", () => this.zoomTo(this.run.peak, 200)),
          this.button("All", () => this.reset()),
          this.button("−", () => this.zoom(2), "Zoom out"),
          this.button("+", () => this.zoom(0.5), "Zoom in"),
        ),
      ),
      this.legend,
      h("div", { class: "frame" }, this.axis.canvas, this.place),
      this.strip.canvas,
      this.brush.canvas,
      this.status,
      h("details", { class: "figures-of" }, h("summary", {}, "The picture as a table"), this.parts),
      this.below,
    );
    this.listen();
    this.chooseOther();
    this.listPhases();
    this.reset();
  }

  draw(): void {
    if (this.run !== this.app.run) {
      this.run = this.app.run;
      this.filter = new Filter(this.run);
      this.applyFilter();
      this.stackBy(this.stackKey);
      this.chooseOther();
      this.listPhases();
      this.reset();
    }
    this.colors();
    this.ask();
    this.describe();
  }

  key(event: KeyboardEvent): boolean {
    const width = this.window.to - this.window.from;
    const keys: Record<string, () => void> = {
      "/": () => this.search.select(),
      ArrowLeft: () => this.pan(-width * 0.2),
      ArrowRight: () => this.pan(width * 0.2),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      "0": () => this.reset(),
      p: () => this.zoomTo(this.run.peak, 200),
      ",": () => this.step(-1),
      ".": () => this.step(1),
      Home: () => this.pan(-this.run.moments),
      End: () => this.pan(this.run.moments),
      Enter: () => this.chooseLargest(),
      Escape: () => this.select(null),
    };
    const action = keys[event.key];
    if (!action) return false;
    action();
    return true;
  }

  /** The phases that can be zoomed to. */
  private listPhases(): void {
    (this.phase.parentElement as HTMLElement).hidden = !this.run.hasPhases;
    const spans = this.run.spans.map((span, at) => [span, at] as const).filter(([span]) => span.end - span.start >= FEWEST);
    const names = spans.slice(0, MAX_PHASES).map(([span, at]) => h("option", { value: at.toString() }, when(this.run, span.start)));
    replace(this.phase, h("option", { value: "" }, "all of the run"), ...names);
  }

  private zoomToPhase(at: number): void {
    const span = this.run.spans[at];
    if (!span) return;
    this.phase.value = at.toString();
    this.window = { from: span.start, to: Math.max(span.end, span.start + FEWEST) };
    this.moved();
  }

  private chooseOther(): void {
    const run = this.app.runs.find((run) => run !== this.run);
    this.other = run && run.moments > 0 ? { run, at: aligned(this.run, run) } : null;
  }

  private button(text: string, act: () => void, label?: string): HTMLElement {
    return h("button", { aria: label ? { label } : undefined, on: { click: act } }, text);
  }

  private stacked(): Stack {
    const { all, filter, hidden } = this;
    const outside = all.names.length;
    this.groups = all;
    if (!filter.isActive && hidden.size === 0) return new Stack(this.run, all.of, outside);
    const of = new Uint8Array(this.run.blocks);
    for (let row = 0; row < of.length; row++) {
      of[row] = filter.has(row) && !hidden.has(all.of[row]) ? all.of[row] : outside;
    }
    this.groups = { names: all.names, of, color: all.color };
    return new Stack(this.run, of, outside + 1);
  }

  private stackBy(key: Key): void {
    if (key !== this.stackKey) this.hidden.clear();
    this.stackKey = key;
    this.all = groups(this.run, key);
    this.stack = this.stacked();
    this.colors();
    this.ask();
    this.describe();
  }

  private applyFilter(): void {
    this.filter.set(this.search.value, Number(this.within.value) || 0, (Number(this.least.value) || 0) * 1024 * 1024);
    this.stackBy(this.stackKey);
  }

  private colors(): void {
    const names = this.groups.names;
    const colors = names.map((_, group) => this.groups.color(group));
    const outside = this.filter.isActive || this.hidden.size > 0;
    if (outside) colors.push(variable("--outside") || rest());
    this.shades = new Shades(colors, variable("--surface"), variable("--chosen"));
    const used = new Set(this.all.of);
    replace(this.legend);
    names.forEach((name, group) => {
      if (!used.has(group)) return;
      const mark = h("i", { class: "swatch", aria: { hidden: "true" } });
      mark.style.backgroundColor = this.groups.color(group);
      const press = (): void => {
        if (!this.hidden.delete(group)) this.hidden.add(group);
        this.stackBy(this.stackKey);
        (this.legend.querySelector(`[data-group="${group}"]`) as HTMLElement | null)?.focus();
      };
      const pressed = this.hidden.has(group) ? "false" : "true";
      this.legend.append(h("button", { class: "entry", data: { group: group.toString() }, aria: { pressed }, on: { click: press } }, mark, name));
    });
    if (this.other) this.legend.append(h("span", { class: "line other" }, `allocated in ${this.other.run.name}`), h("span", { class: "line other-reserved" }, "reserved there"));
    this.legend.append(...(["allocated", "reserved", "requested"] as const).map((line) => h("span", { class: `line ${line}` }, line)));
  }

  private reset(): void {
    this.window = { from: 0, to: Math.max(FEWEST, this.run.moments) };
    this.moved();
  }

  private zoomTo(moment: number, width: number): void {
    this.cursor = moment;
    this.window = { from: moment - width / 2, to: moment + width / 2 };
    this.moved();
  }

  private zoom(factor: number, around?: number): void {
    const { from, to } = this.window;
    const middle = around ?? this.cursorWithin() ?? (from + to) / 2;
    const width = Math.min(Math.max((to - from) * factor, FEWEST), Math.max(FEWEST, this.run.moments));
    const start = middle - ((middle - from) / (to - from)) * width;
    this.window = { from: start, to: start + width };
    this.moved();
  }

  private pan(by: number): void {
    this.window = { from: this.window.from + by, to: this.window.to + by };
    this.moved();
  }

  private step(by: number): void {
    const last = this.run.moments - 1;
    const from = this.cursorWithin() ?? Math.round((this.window.from + this.window.to) / 2);
    this.cursor = Math.min(last, Math.max(0, from + by));
    const { from: left, to: right } = this.window;
    if (this.cursor < left || this.cursor >= right - 1) {
      const width = right - left;
      this.window = { from: this.cursor - width / 2, to: this.cursor + width / 2 };
    }
    this.moved();
  }

  private cursorWithin(): number | null {
    const { cursor, window } = this;
    return cursor !== null && cursor >= window.from && cursor < window.to ? cursor : null;
  }

  private moved(): void {
    const width = Math.min(this.window.to - this.window.from, Math.max(FEWEST, this.run.moments));
    const from = Math.max(0, Math.min(this.window.from, this.run.moments - width));
    this.window = { from, to: from + width };
    this.ask();
    this.describeSoon();
  }

  private chooseLargest(): void {
    const moment = this.cursor ?? this.run.peak;
    let best: number | null = null;
    for (const row of this.run.allocatedAt(moment)) {
      if (this.filter.has(row) && (best === null || this.run.size[row] > this.run.size[best])) best = row;
    }
    // At an allocation, the block itself.
    const event = this.run.event[moment];
    this.select(event > 0 && this.cursor !== null ? event - 1 : best);
  }

  private select(row: number | null): void {
    this.app.block = row;
    this.ask();
    this.describe();
  }

  private listen(): void {
    const { place } = this;
    let dragged: { x: number; from: number; moved: boolean } | null = null;
    const perPixel = (): number => (this.window.to - this.window.from) / Math.max(1, this.plot.width);
    const momentAt = (event: MouseEvent): number => this.window.from + (event.clientX - place.getBoundingClientRect().left) * perPixel();
    place.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX || event.deltaY) * perPixel());
      else this.zoom(Math.exp(Math.sign(event.deltaY) * Math.min(0.5, Math.abs(event.deltaY) / 300)), momentAt(event));
    }, { passive: false });
    place.addEventListener("pointerdown", (event) => {
      dragged = { x: event.clientX, from: this.window.from, moved: false };
      place.setPointerCapture(event.pointerId);
    });
    place.addEventListener("pointermove", (event) => {
      if (dragged) {
        const by = event.clientX - dragged.x;
        if (Math.abs(by) > 3) dragged.moved = true;
        if (dragged.moved) {
          const width = this.window.to - this.window.from;
          const from = dragged.from - by * perPixel();
          this.window = { from, to: from + width };
          this.moved();
          return;
        }
      }
      this.hover(event);
    });
    place.addEventListener("pointerup", (event) => {
      const isClick = dragged !== null && !dragged.moved;
      dragged = null;
      if (!isClick) return;
      this.cursor = Math.floor(momentAt(event));
      this.app.goTo(this.cursor);
      this.select(this.pick(event));
    });
    place.addEventListener("pointerleave", () => {
      this.tooltip.hidden = true;
      this.hovered = null;
    });
    this.phase.addEventListener("change", () => (this.phase.value === "" ? this.reset() : this.zoomToPhase(Number(this.phase.value))));
    this.strip.canvas.addEventListener("click", (event) => {
      const moment = momentAt(event);
      this.zoomToPhase(this.run.spans.findIndex((span) => span.start <= moment && moment < span.end));
    });
    this.search.addEventListener("input", () => this.applyFilter());
    this.within.addEventListener("input", () => this.applyFilter());
    this.least.addEventListener("input", () => this.applyFilter());
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Escape" || event.key === "Enter") place.focus();
    });
    this.brushing();
  }

  private brushing(): void {
    const { canvas } = this.brush;
    let start: number | null = null;
    const at = (event: PointerEvent): number => {
      const box = canvas.getBoundingClientRect();
      return (Math.min(Math.max(event.clientX - box.left, 0), box.width) / box.width) * this.run.moments;
    };
    canvas.addEventListener("pointerdown", (event) => {
      start = at(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (start === null) return;
      const now = at(event);
      if (Math.abs(now - start) < FEWEST) return;
      this.window = { from: Math.min(start, now), to: Math.max(start, now) };
      this.moved();
    });
    canvas.addEventListener("pointerup", (event) => {
      if (start !== null && Math.abs(at(event) - start) < FEWEST) {
        const width = this.window.to - this.window.from;
        this.window = { from: start - width / 2, to: start + width / 2 };
        this.moved();
      }
      start = null;
    });
  }

  private pick(event: MouseEvent): number | null {
    const box = this.place.getBoundingClientRect();
    const ratio = this.plot.ratio;
    const [x, y] = [event.clientX - box.left, event.clientY - box.top].map((at) => Math.floor(at * ratio));
    return this.picture.blockAt(x, y, this.run, this.stack, this.groups);
  }

  private hover(event: MouseEvent): void {
    const { run, tooltip } = this;
    const box = this.place.getBoundingClientRect();
    const x = event.clientX - box.left;
    const column = Math.floor(x * this.plot.ratio);
    if (run.moments === 0 || column < 0 || column >= this.picture.width) return;
    const moment = this.picture.columns[column];
    const shown = this.pick(event);
    this.hovered = moment;
    const list = h("dl", { class: "facts" });
    const line = (term: string, text: string): void => list.append(h("dt", {}, term), h("dd", {}, text));
    if (shown !== null) {
      for (const [term, text] of facts(run, shown)) if (term !== "Evidence") line(term, text);
      const group = this.groups.of[shown];
      line("Group", `${this.groups.names[group] ?? "what is left out"}: ${bytes(this.stack.at(moment)[group])}`);
    }
    line("Then", `${bytes(run.allocated[moment])} allocated, ${bytes(run.reserved[moment])} reserved`);
    line("Request", `${request(moment)}, ${commaAfter(when(run, moment))}${duration(run.time[moment])}`);
    replace(tooltip, shown === null ? null : h("b", {}, title(run, shown)), list);
    tooltip.hidden = false;
    const width = tooltip.offsetWidth;
    const left = x + 16 + width > box.width ? Math.max(0, x - width - 16) : x + 16;
    tooltip.style.left = `${left}px`;
    tooltip.style.top = `${Math.max(0, Math.min(event.clientY - box.top + 12, box.height - tooltip.offsetHeight))}px`;
    this.overlay();
  }

  /** The highest value of the window, of all lines. */
  private most(): number {
    const { run, window, app, plot } = this;
    const from = Math.max(0, Math.floor(window.from));
    const to = Math.min(run.moments, Math.ceil(window.to));
    if (from >= to) return 1;
    let most = Math.max(1, run.reserved[app.maxima("reserved").at(from, to)], run.allocated[app.maxima("allocated").at(from, to)]);
    for (let x = 0; this.other && x < plot.width; x++) {
      const value = this.otherAt(x, "reserved");
      if (value > most) most = value;
    }
    return most * 1.06;
  }

  /** The most of a figure of the other run in a column of the plot; NaN where it has no such phase. */
  private otherAt(x: number, figure: "allocated" | "reserved"): number {
    const { other, window, run, plot } = this;
    if (!other) return NaN;
    const scale = (window.to - window.from) / Math.max(1, plot.width);
    const from = Math.min(run.moments - 1, Math.floor(window.from + x * scale));
    return mostAligned(other.at, other.run[figure], this.app.maxima(figure, other.run), from, Math.min(run.moments, Math.floor(window.from + (x + 1) * scale)));
  }

  private paint(): void {
    const begin = performance.now();
    const { plot, run } = this;
    if (!plot.fit() || run.moments === 0) return;
    if (this.picture.width !== plot.canvas.width || this.picture.height !== plot.canvas.height) {
      this.picture = new Picture(plot.canvas.width, plot.canvas.height);
    }
    const selected = this.app.block ?? -1;
    this.top = this.most();
    this.place.dataset.top = this.top.toString();
    this.picture.draw(plot.context, run, this.stack, this.groups, this.app.maxima("allocated"), this.window, this.top, this.shades, selected);
    this.drawLines();
    this.overlay();
    this.drawAxis();
    this.drawStrip();
    this.drawBrush();
    this.painted = performance.now() - begin;
  }

  private xOf(moment: number): number {
    return ((moment - this.window.from) / (this.window.to - this.window.from)) * this.plot.width;
  }

  /** Lines and marks, above the areas. */
  private drawLines(): void {
    const { run, plot } = this;
    const { context } = plot;
    context.setTransform(plot.ratio, 0, 0, plot.ratio, 0, 0);
    const most = this.top;
    const moment = (x: number): number => this.picture.columns[Math.min(this.picture.width - 1, Math.floor(x * plot.ratio))];
    context.strokeStyle = variable("--grid");
    context.lineWidth = 1;
    for (const mark of ticks(most, 6)) {
      const y = Math.round(plot.height - (mark / most) * plot.height) + 0.5;
      context.globalAlpha = 0.5;
      context.beginPath();
      context.moveTo(0, y);
      context.lineTo(plot.width, y);
      context.stroke();
    }
    context.globalAlpha = 1;
    context.lineWidth = 1;
    context.strokeStyle = variable("--allocated");
    steps(context, plot.width, plot.height, most, (x) => run.allocated[moment(x)]);
    context.lineWidth = 1.5;
    context.strokeStyle = variable("--reserved");
    steps(context, plot.width, plot.height, most, (x) => run.reserved[moment(x)]);
    context.strokeStyle = variable("--requested");
    context.setLineDash([3, 3]);
    steps(context, plot.width, plot.height, most, (x) => run.requested[moment(x)]);
    context.setLineDash([]);
    this.drawOther(context, most);
    this.labels = [];
    this.mark(context, run.peak, "peak", variable("--ink"));
    if (run.outOfMemory !== null) this.mark(context, run.outOfMemory, "out of memory", variable("--bad"));
    for (const { after } of run.failures.slice(0, MAX_FAILURES)) this.mark(context, after, "recorded out of memory", variable("--bad"));
    this.place.dataset.labels = JSON.stringify(this.labels);
  }

  /** What follows the pointer and the cursor, on a canvas of its own. */
  private overlay(): void {
    const { lines } = this;
    if (!lines.fit()) return;
    const context = lines.clear();
    const at = this.hovered ?? this.cursorWithin();
    if (at !== null) {
      const x = this.xOf(at + 0.5);
      context.strokeStyle = variable("--ink");
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(x, 0);
      context.lineTo(x, lines.height);
      context.stroke();
    }
  }

  /** The other run of the page, as a line: what was recorded, for example, over what is predicted. */
  private drawOther(context: CanvasRenderingContext2D, most: number): void {
    const { other, plot } = this;
    if (!other) return;
    context.strokeStyle = variable("--other");
    context.lineWidth = 2;
    context.setLineDash([6, 3]);
    steps(context, plot.width, plot.height, most, (x) => this.otherAt(x, "allocated"));
    context.lineWidth = 1;
    context.setLineDash([2, 2]);
    steps(context, plot.width, plot.height, most, (x) => this.otherAt(x, "reserved"));
    context.setLineDash([]);
  }

  private mark(context: CanvasRenderingContext2D, moment: number, text: string, color: string): void {
    const x = this.xOf(moment + 0.5);
    if (x < 0 || x > this.plot.width) return;
    context.strokeStyle = color;
    context.fillStyle = color;
    context.lineWidth = 1;
    context.setLineDash([2, 3]);
    context.beginPath();
    context.font = `11px ${variable("--sans")}`;
    const width = context.measureText(text).width;
    const label = { text, x: Math.min(Math.max(0, x - width / 2), this.plot.width - width), y: 11, width };
    // Below the labels that it would cover.
    const covers = (other: Label): boolean => other.y === label.y && label.x < other.x + other.width + 4 && other.x < label.x + width + 4;
    while (this.labels.some(covers)) label.y += 13;
    this.labels.push(label);
    context.moveTo(x, label.y + 5);
    context.lineTo(x, this.plot.height);
    context.stroke();
    context.setLineDash([]);
    context.fillText(text, label.x, label.y);
  }

  private drawAxis(): void {
    const { axis, top: most } = this;
    if (!axis.fit()) return;
    const context = axis.clear();
    context.fillStyle = variable("--muted");
    context.font = `11px ${variable("--sans")}`;
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const mark of ticks(most, 6)) {
      const y = axis.height - (mark / most) * axis.height;
      context.fillText(tick(mark), axis.width - 8, Math.max(7, Math.min(axis.height - 7, y)));
    }
  }

  /** Phases and iterations under the plot. */
  private drawStrip(): void {
    const { strip, run } = this;
    if (!strip.fit()) return;
    const context = strip.clear();
    const offset = strip.width - this.plot.width;
    context.font = `11px ${variable("--sans")}`;
    context.textBaseline = "middle";
    if (!run.hasPhases) return;
    let lastEnd = -1;
    let iteration: number | null = null;
    for (const span of run.spans) {
      const from = Math.max(0, this.xOf(span.start));
      const to = Math.min(this.plot.width, this.xOf(span.end));
      if (to <= 0 || from >= this.plot.width) continue;
      const at = run.phases.indexOf(span.phase);
      context.fillStyle = variable(at % 2 === 0 ? "--strip-even" : "--strip-odd");
      context.fillRect(offset + from, 0, Math.max(1, to - from - (to - from > 3 ? 1 : 0)), 12);
      context.fillStyle = variable("--muted");
      const name = words(span.phase);
      if (to - from > context.measureText(name).width + 8) context.fillText(name, offset + from + 4, 6.5);
      if (span.iteration !== null && span.iteration !== iteration) {
        iteration = span.iteration;
        const text = `iteration ${iteration}`;
        if (offset + from > lastEnd + 8 && offset + from + context.measureText(text).width < strip.width) {
          context.fillText(text, offset + from, 20);
          lastEnd = offset + from + context.measureText(text).width;
        }
      }
    }
  }

  /** All of the run, with the window. */
  private drawBrush(): void {
    const { brush, run } = this;
    if (!brush.fit()) return;
    const context = brush.clear();
    const maxima = this.app.maxima("allocated");
    const most = Math.max(1, run.reserved[run.reservedPeak], run.allocated[run.peak]) * 1.05;
    const scale = run.moments / brush.width;
    const value = (x: number): number => {
      const from = Math.min(run.moments - 1, Math.floor(x * scale));
      return run.allocated[maxima.at(from, Math.max(from + 1, Math.min(run.moments, Math.floor((x + 1) * scale))))];
    };
    context.fillStyle = variable("--curve");
    for (let x = 0; x < brush.width; x++) {
      const height = (value(x) / most) * brush.height;
      context.fillRect(x, brush.height - height, 1, height);
    }
    const from = this.window.from / scale;
    const to = this.window.to / scale;
    context.fillStyle = variable("--veil");
    context.fillRect(0, 0, from, brush.height);
    context.fillRect(to, 0, brush.width - to, brush.height);
    context.strokeStyle = variable("--accent");
    context.lineWidth = 2;
    context.strokeRect(from + 1, 1, Math.max(2, to - from - 2), brush.height - 2);
  }

  private later = 0;

  private describeSoon(): void {
    clearTimeout(this.later);
    this.later = window.setTimeout(() => this.describe(), 120);
  }

  /** What the window shows, in words and as a table. */
  private describe(): void {
    const { run, app } = this;
    clearTimeout(this.later);
    if (run.moments === 0) {
      replace(this.status, "The run makes no requests.");
      return;
    }
    const from = Math.max(0, Math.floor(this.window.from));
    const to = Math.min(run.moments, Math.ceil(this.window.to));
    const top = app.maxima("allocated").at(from, to);
    const found = this.filter.isActive
      ? `; ${plural(this.filter.count, "block")} of ${count(run.blocks)} match, ${bytes(this.filter.bytesAt(run.peak))} (${percent(this.filter.bytesAt(run.peak), run.allocated[run.peak])}) at the peak`
      : "";
    const cursor = this.cursorWithin();
    const place = when(run, top);
    const event = cursor === null ? "" : `; request ${request(cursor)} ${this.eventText(cursor)}`;
    this.status.textContent = `Requests ${request(from)} to ${request(to - 1)}: at most ${bytes(run.allocated[top])} allocated${place === "" ? "" : `, in ${place}`}${found}${event}`;
    replace(this.parts, this.asTable(from, top, to));
    const choose = (row: number): void => this.select(row);
    const rows = this.filter.largestWithin(from, to, MOST_BLOCKS, (row) => !this.hidden.has(this.all.of[row]));
    replace(
      this.below,
      app.block !== null ? panel(app, app.block, () => this.select(null)) : null,
      blockTable(app, `Largest blocks in the window${this.filter.isActive ? " that match" : ""}`, rows, choose, { most: MAX_ROWS, isCut: rows.length === MOST_BLOCKS }),
    );
  }

  /** The groups of the picture at its first, highest and last moment. */
  private asTable(from: number, top: number, to: number): HTMLElement {
    const { run, stack, groups, app } = this;
    const reserved = app.maxima("reserved").at(from, to);
    const moments = [from, top, to - 1];
    const parts = moments.map((moment) => [...stack.at(moment)]);
    const rows = [...groups.names.keys(), groups.names.length]
      .filter((group) => parts.some((of) => of[group] > 0))
      .map((group) => [groups.names[group] ?? "left out", ...parts.map((of) => bytes(of[group]))]);
    const line = (name: string, values: Float64Array): string[] => [name, ...moments.map((moment) => bytes(values[moment]))];
    rows.push(line("allocated", run.allocated), line("requested", run.requested), line("reserved", run.reserved));
    const titles = ["First request of the window", "Request with the most allocated memory", "Last request"];
    const columns = titles.map((name, at) => ({ title: `${name}: ${request(moments[at])}${commaBefore(when(run, moments[at]))}`, numeric: true }));
    return table(`Allocated memory by ${KEYS.find(([key]) => key === this.stackKey)?.[1].toLowerCase()}; at most ${bytes(run.reserved[reserved])} reserved`, [{ title: "Group" }, ...columns], rows);
  }

  private eventText(moment: number): string {
    const event = this.run.event[moment];
    if (event === 0) return "has no memory";
    const row = Math.abs(event) - 1;
    return `${event > 0 ? "allocates" : "frees"} ${title(this.run, row)}`;
  }
}
