// Plan: heap maps of an iteration, as planned and as the allocator places the same blocks. Time from left to right,
// addresses from the bottom up.

import type { App, View } from "../app";
import type { Plan } from "../data/plan";
import type { Run } from "../data/run";
import { onFrame, Surface } from "../draw/canvas";
import { h, replace } from "../ui/dom";
import { bytes, percent, plural, tick, ticks, words } from "../ui/format";
import { roleColor, variable } from "../ui/palette";

export function planned(app: App): View {
  const root = h("div", { class: "plans" });
  const maps = [new HeapMap("The plan: which block lies where, over time"), new HeapMap("The allocator: which block lies where, over time")];
  const paint = onFrame(() => {
    const { plan } = app.run;
    if (!plan) return;
    const most = Math.max(plan.top, plan.head.planned_bytes ?? 0, 1);
    maps[0].draw(app.run, plan, plan.offset, most);
    maps[1].draw(app.run, plan, plan.actual, most);
  });
  const draw = (): void => {
    const { run } = app;
    const { plan } = run;
    if (!plan) {
      replace(root, h("p", { class: "muted" }, "There is no plan of this run: choose the first one, or write the page with --plan."));
      return;
    }
    const { head } = plan;
    const planner = head.planned_bytes === null ? "no plan" : `planned by ${head.planner}: ${bytes(head.planned_bytes)}`;
    replace(
      root,
      h("dl", { class: "row" }, ...figures(plan)),
      legend(run, plan),
      h(
        "div",
        { class: "sides" },
        h("section", { class: "card", aria: { label: "Planned" } }, h("h2", {}, planner), maps[0].root),
        h("section", { class: "card", aria: { label: "Allocator" } }, h("h2", {}, `PyTorch's allocator: ${bytes(head.reserved_bytes)}`), maps[1].root),
      ),
    );
    paint();
  };
  return { root, draw };
}

function figures(plan: Plan): HTMLElement[] {
  const { head } = plan;
  const figure = (term: string, text: string, value?: number): HTMLElement => {
    const data = value === undefined ? undefined : { figure: term.toLowerCase(), bytes: value.toString() };
    return h("div", {}, h("dt", {}, term), h("dd", { data }, text));
  };
  const list = [figure("Blocks of the iteration", plan.blocks.toString()), figure("At least needed", bytes(head.lower_bound_bytes))];
  if (head.planned_bytes !== null) {
    const less = head.reserved_bytes - head.planned_bytes;
    list.push(figure("Planned", `${bytes(head.planned_bytes)}${head.proven ? ", proven smallest" : ""}`, head.planned_bytes));
    list.push(figure("Less than reserved", `${bytes(less)} (${percent(less, head.reserved_bytes)})`));
  }
  list.push(figure("Reserved by the allocator", bytes(head.reserved_bytes), head.reserved_bytes));
  return list;
}

function legend(run: Run, plan: Plan): HTMLElement {
  const used = new Set(plan.role);
  const list = h("p", { class: "legend plain" });
  run.roles.forEach((role, at) => {
    if (!used.has(at)) return;
    const mark = h("i", { class: "swatch", aria: { hidden: "true" } });
    mark.style.backgroundColor = roleColor(role);
    list.append(h("span", { class: "entry" }, mark, words(role)));
  });
  return list;
}

class HeapMap {
  readonly root: HTMLElement;
  private readonly surface: Surface;
  private readonly tooltip = h("div", { class: "tooltip", hidden: true, role: "presentation" });
  private under: (x: number, y: number) => number = () => -1;
  private describe: (row: number) => HTMLElement = () => h("dl");

  constructor(label: string) {
    this.surface = new Surface(label);
    this.surface.canvas.className = "heap";
    this.root = h("div", { class: "mapped" }, this.surface.canvas, this.tooltip);
    this.surface.canvas.addEventListener("pointermove", (event) => {
      const box = this.surface.canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      const row = this.under(x, y);
      this.tooltip.hidden = row < 0;
      if (row < 0) return;
      replace(this.tooltip, this.describe(row));
      this.tooltip.style.left = `${x + 16 + this.tooltip.offsetWidth > box.width ? Math.max(0, x - this.tooltip.offsetWidth - 16) : x + 16}px`;
      this.tooltip.style.top = `${y + 14}px`;
    });
    this.surface.canvas.addEventListener("pointerleave", () => (this.tooltip.hidden = true));
  }

  draw(run: Run, plan: Plan, place: Float64Array | null, most: number): void {
    const { surface } = this;
    if (!surface.fit()) return;
    const context = surface.clear();
    const span = Math.max(1, plan.lastTick - plan.firstTick);
    const x = (tick: number): number => ((tick - plan.firstTick) / span) * surface.width;
    const y = (address: number): number => surface.height - (address / most) * surface.height;
    context.font = `11px ${variable("--sans")}`;
    if (place === plan.actual) {
      context.fillStyle = variable("--free");
      for (let row = 0; row < plan.segmentSize.length; row++) {
        const top = y(plan.segmentBase[row] + plan.segmentSize[row]);
        const left = x(plan.segmentStart[row]);
        context.fillRect(left, top, x(plan.segmentEnd[row]) - left, y(plan.segmentBase[row]) - top);
      }
    }
    const colors = run.roles.map(roleColor);
    const edge = variable("--surface");
    for (let row = 0; place && row < plan.blocks; row++) {
      if (place[row] < 0) continue;
      const [left, top] = [x(plan.start[row]), y(place[row] + plan.size[row])];
      const [width, height] = [x(plan.end[row]) - left, y(place[row]) - top];
      context.fillStyle = colors[plan.role[row]];
      context.fillRect(left, top, Math.max(0.5, width), Math.max(0.5, height));
      if (width > 4 && height > 4) {
        context.strokeStyle = edge;
        context.lineWidth = 0.5;
        context.strokeRect(left, top, width, height);
      }
    }
    context.fillStyle = variable("--muted");
    for (const mark of ticks(most, 5)) if (mark > 0) context.fillText(tick(mark), 3, y(mark) + 11);
    this.under = (pointX, pointY) => {
      const at = plan.firstTick + (pointX / surface.width) * span;
      const address = ((surface.height - pointY) / surface.height) * most;
      for (let row = 0; place && row < plan.blocks; row++) {
        if (place[row] >= 0 && plan.start[row] <= at && at < plan.end[row] && place[row] <= address && address < place[row] + plan.size[row]) return row;
      }
      return -1;
    };
    this.describe = (row) => {
      const list = h("dl", { class: "facts" });
      const line = (term: string, text: string): void => list.append(h("dt", {}, term), h("dd", {}, text));
      line("Block", `${bytes(plan.size[row])} ${words(run.roles[plan.role[row]])}`);
      if (plan.head.ops[plan.op[row]]) line("Operator", plan.head.ops[plan.op[row]]);
      line("Lifetime", plural(plan.end[row] - plan.start[row], "request"));
      line("Offset", bytes(place ? place[row] : 0));
      return list;
    };
  }
}
