// The choice of a moment: a slider over the run with the curve of memory above it, and the moments that matter.

import type { App } from "../app";
import { largestFree } from "../data/free";
import type { Run } from "../data/run";
import { steps, Surface } from "../draw/canvas";
import { when } from "./block";
import { h, replace } from "./dom";
import { bytes, commaAfter, count, duration, request, tick } from "./format";
import { variable } from "./palette";

export class MomentChooser {
  readonly root: HTMLElement;
  private readonly slider = h("input", { type: "range", id: "moment", min: 0, step: 1, aria: { label: "Moment: the state after this request" } });
  private readonly curve = new Surface(null);
  private readonly text = h("p", { class: "status", aria: { live: "polite" } });
  /** The largest free piece in each column of the curve, and the run that it is of. */
  private free: Float64Array = new Float64Array(0);
  private freeOf: Run | null = null;
  private readonly marks = h("div", { class: "buttons" });

  constructor(
    private readonly app: App,
    private readonly changed: () => void,
    /** Tells the largest free piece from the others, over time. */
    private readonly showsFree = false,
  ) {
    const free = showsFree ? [["largest", "largest free piece"], ["unused", "other free pieces"]] : [["unused", "reserved, not allocated"]];
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    const { canvas } = this.curve;
    canvas.className = "curve";
    const at = (event: PointerEvent): void => {
      const box = canvas.getBoundingClientRect();
      this.go(Math.round(((event.clientX - box.left) / box.width) * app.run.moments - 0.5));
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      at(event);
    });
    canvas.addEventListener("pointermove", (event) => event.buttons > 0 && at(event));
    this.root = h("div", { class: "moment" }, h("div", { class: "controls" }, this.marks, h("p", { class: "legend plain" }, h("span", { class: "area allocated" }, "allocated"), ...free.map(([name, text]) => h("span", { class: `area ${name}` }, text)))), canvas, this.slider, this.text);
  }

  key(event: KeyboardEvent): boolean {
    const steps: Record<string, () => number> = {
      ",": () => this.app.moment - 1,
      ".": () => this.app.moment + 1,
      ArrowLeft: () => this.app.moment - Math.max(1, Math.round(this.app.run.moments / 100)),
      ArrowRight: () => this.app.moment + Math.max(1, Math.round(this.app.run.moments / 100)),
      p: () => this.app.run.peak,
    };
    const step = steps[event.key];
    if (!step) return false;
    this.go(step());
    return true;
  }

  draw(): void {
    const { run, moment } = this.app;
    this.slider.max = Math.max(0, run.moments - 1).toString();
    this.slider.value = moment.toString();
    const place = when(run, moment);
    this.slider.setAttribute("aria-valuetext", `request ${request(moment)}, ${commaAfter(place)}${bytes(run.allocated[moment] ?? 0)} allocated, ${bytes(run.reserved[moment] ?? 0)} reserved`);
    const event = run.event[moment] ?? 0;
    const row = Math.abs(event) - 1;
    const what = event === 0 ? "" : ` ${event > 0 ? "allocates" : "frees"} ${bytes(run.size[row])} (${run.texts[run.op[row]] || "unknown operator"});`;
    const oom = this.app.atFailure ? run.answer.out_of_memory : null;
    const failing = run.outOfMemory ?? 0;
    this.text.textContent = oom
      ? `At request ${request(failing)}, ${commaAfter(when(run, failing))}${bytes(oom.requested_bytes)} cannot be allocated; ${bytes(oom.allocated_bytes)} allocated, ${bytes(oom.reserved_bytes)} reserved`
      : `After request ${request(moment)} of ${count(run.moments)}, ${commaAfter(place)}${duration(run.time[moment] ?? 0)}:${what} ${bytes(run.allocated[moment] ?? 0)} allocated, ${bytes(run.reserved[moment] ?? 0)} reserved`;
    const mark = (name: string, at: number | null, atFailure = false): HTMLElement | null => {
      if (at === null) return null;
      const isShown = at === moment && atFailure === this.app.atFailure;
      return h("button", { aria: { pressed: isShown ? "true" : "false" }, on: { click: () => this.go(at, atFailure) } }, name);
    };
    const isFocused = this.marks.contains(document.activeElement) ? [...this.marks.children].indexOf(document.activeElement as Element) : -1;
    replace(this.marks, mark("Peak allocated", run.peak), mark("Peak reserved", run.reservedPeak), mark("Out of memory", run.outOfMemory === null ? null : Math.max(0, run.outOfMemory - 1), true), mark("Recorded out of memory", run.failures[0]?.after ?? null), mark("End", run.moments - 1));
    (this.marks.children[isFocused] as HTMLElement | undefined)?.focus();
    this.drawCurve();
  }

  private go(moment: number, atFailure = false): void {
    this.app.goTo(moment, atFailure);
    this.draw();
    this.changed();
  }

  /** Reserved and allocated memory, and between them what no tensor holds: fragmentation over time. */
  private drawCurve(): void {
    const { curve, app } = this;
    const { run } = app;
    if (!curve.fit() || run.moments === 0) return;
    const context = curve.clear();
    const maxima = app.maxima("allocated");
    const most = Math.max(1, run.reserved[run.reservedPeak], run.allocated[run.peak]) * 1.04;
    const scale = run.moments / curve.width;
    const at = (x: number): number => {
      const from = Math.min(run.moments - 1, Math.floor(x * scale));
      return maxima.at(from, Math.max(from + 1, Math.min(run.moments, Math.floor((x + 1) * scale))));
    };
    const column = (x: number, bytes: number, color: string): void => {
      context.fillStyle = color;
      const height = (bytes / most) * curve.height;
      context.fillRect(x, curve.height - height, 1, height);
    };
    const moments = Uint32Array.from({ length: curve.width }, (_, x) => at(x));
    if (this.showsFree && (this.freeOf !== run || this.free.length !== moments.length)) {
      this.freeOf = run;
      this.free = largestFree(run, moments);
    }
    const [unused, largest, allocated] = [variable("--outside"), variable("--largest"), variable("--curve")];
    for (let x = 0; x < curve.width; x++) {
      const moment = moments[x];
      column(x, run.reserved[moment], unused);
      if (this.showsFree) column(x, Math.min(run.reserved[moment], run.allocated[moment] + this.free[x]), largest);
      column(x, run.allocated[moment], allocated);
    }
    context.strokeStyle = variable("--reserved");
    context.lineWidth = 1;
    steps(context, curve.width, curve.height, most, (x) => run.reserved[moments[Math.min(x, moments.length - 1)]]);
    context.fillStyle = variable("--muted");
    context.font = `11px ${variable("--sans")}`;
    context.fillText(tick(Math.max(run.reserved[run.reservedPeak], 1)), 4, 12);
    const x = ((app.moment + 0.5) / run.moments) * curve.width;
    context.fillStyle = variable("--accent");
    context.fillRect(Math.round(x) - 1, 0, 2, curve.height);
  }
}
