// Plan: heap maps of an iteration, as planned and as the allocator places the same blocks.

import type { App, View } from "../app";
import type { Plan } from "../data/plan";
import type { Run } from "../data/run";
import { onFrame } from "../draw/canvas";
import { HeapMap, type HeapBlocks } from "../draw/heap";
import { rolesLegend } from "../ui/block";
import { h, replace, table } from "../ui/dom";
import { bytes, count, percent, plural, words } from "../ui/format";

/** The blocks of the table. */
const MAX_ROWS = 40;

export function planned(app: App): View {
  const root = h("div", { class: "plans" });
  const maps = [new HeapMap("The plan: which block lies where, over time"), new HeapMap("The allocator: which block lies where, over time")];
  const paint = onFrame(() => {
    const { plan } = app.run;
    if (!plan) return;
    const most = Math.max(plan.top, plan.head.planned_bytes ?? 0, 1);
    maps[0].draw(placed(app.run, plan, plan.offset), most);
    maps[1].draw(placed(app.run, plan, plan.actual), most);
  });
  const draw = (): void => {
    const { run } = app;
    const { plan } = run;
    if (!plan) {
      replace(root, h("p", { class: "muted" }, "There is no plan of this run: choose the first one, or write the page with --plan."));
      return;
    }
    const { head } = plan;
    const planner = head.planned_bytes === null ? "No plan" : `Planned by ${head.planner}: ${bytes(head.planned_bytes)}`;
    replace(
      root,
      h("dl", { class: "row" }, ...figures(plan)),
      rolesLegend(run, plan.role),
      h(
        "div",
        { class: "sides" },
        h("section", { class: "card", aria: { label: "Planned" } }, h("h2", {}, planner), maps[0].root),
        h("section", { class: "card", aria: { label: "Allocator" } }, h("h2", {}, `PyTorch's allocator: ${bytes(head.reserved_bytes)}`), maps[1].root),
      ),
    );
    root.append(largest(run, plan));
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

/** The blocks of the plan at their places; the segments of the allocator with them. */
function placed(run: Run, plan: Plan, place: Float64Array | null): HeapBlocks {
  const at = place ?? new Float64Array(plan.blocks).fill(-1);
  const describe = (row: number): [string, string][] => [
    ["Operator", plan.head.ops[plan.op[row]]],
    ["Lifetime", plural(plan.end[row] - plan.start[row], "request")],
  ];
  const segments = { base: plan.segmentBase, size: plan.segmentSize, start: plan.segmentStart, end: plan.segmentEnd };
  return {
    from: plan.firstTick,
    to: plan.lastTick,
    roles: run.roles,
    start: plan.start,
    end: plan.end,
    size: plan.size,
    role: plan.role,
    offset: at,
    segments: place === plan.actual ? segments : null,
    describe,
  };
}

/** The largest blocks with their places in both maps. */
function largest(run: Run, plan: Plan): HTMLElement {
  const rows = [...plan.size.keys()].sort((a, b) => plan.size[b] - plan.size[a] || a - b);
  const offset = (place: Float64Array | null, row: number): string => (place && place[row] >= 0 ? bytes(place[row]) : "–");
  const cells = rows.slice(0, MAX_ROWS).map((row) => [
    bytes(plan.size[row]),
    words(run.roles[plan.role[row]]),
    plan.head.ops[plan.op[row]] || "–",
    `${count(plan.start[row])} to ${count(plan.end[row])}`,
    offset(plan.offset, row),
    offset(plan.actual, row),
  ]);
  const columns = [
    { title: "Size", numeric: true },
    { title: "Role" },
    { title: "Operator" },
    { title: "Requests", numeric: true },
    { title: "Offset in the plan", numeric: true },
    { title: "In the allocator", numeric: true },
  ];
  const caption = `Largest of ${plural(plan.blocks, "block")}`;
  return table(caption, columns, cells);
}
