// Overview: the verdict, the three figures with their range, what is alive at the peak, and what would make it fit.

import type { App, View } from "../app";
import type { Answer, Bounds, Place } from "../data/page";
import type { Run } from "../data/run";
import { TREES, tree, type Node, type TreeKey } from "../data/tree";
import { squarified, type Box } from "../draw/treemap";
import { decided, figures, moment, notes, verdict } from "../ui/answer";
import { choice, h, replace, table } from "../ui/dom";
import { bounds as boundsText, bytes, count, percent, plural, shortLine, signed, words } from "../ui/format";
import { ink, roleColor } from "../ui/palette";
import { when } from "../ui/block";

const KEYS = [...TREES].reverse().filter(([name]) => name !== "stack");

/** The height of a line in a tile. */
const LINE = 16;

/** The width of a digit in a tile. */
const DIGIT = 7;

/** Boxes of the treemap, at most. */
const MAX_BOXES = 500;

export function overview(app: App): View {
  const root = h("div", { class: "overview" });
  let key: TreeKey = "role";
  const map = h("div", { class: "treemap", role: "img", aria: { label: "Treemap of the memory at the peak. The table below has its parts; the view Peak has all of them." } });
  const list = h("div");
  const redraw = (): void => drawTree(app, key, map, list);
  const draw = (): void => {
    const { answer } = app.run;
    const place = when(app.run, app.run.peak);
    const keys = choice("Group by", KEYS, key, (chosen) => {
      key = chosen;
      redraw();
    });
    replace(
      root,
      verdict(answer, answer.peak.at ? phaseOf(app.run, answer.peak.at) : ""),
      figures(answer),
      everyRun(app),
      h(
        "section",
        { class: "card wide", aria: { label: "Memory at the peak" } },
        h("header", {}, h("h2", {}, "Memory at the peak"), h("p", { class: "muted", id: "at-peak", data: { bytes: (app.run.allocated[app.run.peak] ?? 0).toString() } }, `${bytes(app.run.allocated[app.run.peak] ?? 0)}${place === "" ? "" : ` in ${place}`}`), keys),
        map,
        list,
      ),
      fitting(app.run),
      iterations(answer),
      notes(answer),
    );
    redraw();
  };
  return { root, draw };
}

/** `iteration 1, backward`; nothing of a recording without phases. */
function phaseOf(run: Run, place: Place): string {
  return !run.hasPhases && place.phase === "init" ? "" : moment(place);
}

/** The figures of all runs of the page. */
function everyRun(app: App): HTMLElement | null {
  if (app.runs.length < 2) return null;
  const figure = (value: number, { low, high }: Bounds): HTMLElement =>
    h("span", {}, bytes(value), low === high ? null : h("span", { class: "muted small line" }, boundsText(value, low, high)));
  const rows = app.runs.map((run) => {
    const { peak, range, device } = run.answer;
    const open = h("button", { class: "link", on: { click: () => app.show(run) } }, run.name);
    return [
      run === app.run ? h("b", {}, run.name) : open,
      device.name,
      decided(run.answer),
      figure(peak.allocated_bytes, range.allocated_bytes),
      figure(peak.reserved_bytes, range.reserved_bytes),
      figure(peak.device_bytes, range.device_bytes),
    ];
  });
  const columns = [{ title: "Run" }, { title: "Device" }, { title: "Verdict" }, { title: "Peak allocated", numeric: true }, { title: "Peak reserved", numeric: true }, { title: "In nvidia-smi", numeric: true }];
  return h("section", { class: "card wide", id: "runs", aria: { label: "Runs of this page" } }, h("h2", {}, "Runs of this page"), table("Figures of every run", columns, rows));
}

function drawTree(app: App, key: TreeKey, map: HTMLElement, list: HTMLElement): void {
  const { run } = app;
  const root = run.moments > 0 ? tree(run, run.peak, key) : null;
  map.replaceChildren();
  if (!root || root.bytes === 0) {
    replace(list, h("p", { class: "muted" }, "Nothing is allocated."));
    return;
  }
  const box = map.getBoundingClientRect();
  const [width, height] = [box.width || 900, box.height || 360];
  // Breadth first, so that what is left out is small.
  const waiting: [Node[], Box, string][] = [[root.children, { x: 0, y: 0, width, height }, "outer"]];
  let left = MAX_BOXES;
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    const [nodes, within, kind] = next;
    const shown = nodes.filter((node) => node.bytes > 0);
    const boxes = squarified(shown.map((node) => node.bytes), within);
    const visible = [...shown.keys()].filter((at) => boxes[at].width >= 3 && boxes[at].height >= 3).slice(0, left);
    left -= visible.length;
    for (const at of visible) {
      const node = key === "module" ? joined(shown[at]) : shown[at];
      const { x, y, width: wide, height: high } = boxes[at];
      const hasRoom = wide > 60 && high > 40 && node.children.length > 1;
      map.append(tile(node, boxes[at], root.bytes, width, hasRoom ? `${kind} group` : kind));
      if (hasRoom) waiting.push([withRest(node), { x: x + 2, y: y + 20, width: wide - 4, height: high - 22 }, "inner"]);
    }
  }
  const rows = root.children.slice(0, 12).map((node) => [
    swatch(node.role, node.name),
    bytes(node.bytes),
    percent(node.bytes, root.bytes),
    count(node.blocks),
  ]);
  const others = root.children.slice(12).reduce((sum, node) => ({ bytes: sum.bytes + node.bytes, blocks: sum.blocks + node.blocks }), { bytes: 0, blocks: 0 });
  if (others.blocks > 0) {
    rows.push([`${root.children.length - 12} others`, bytes(others.bytes), percent(others.bytes, root.bytes), count(others.blocks)]);
  }
  const columns = [{ title: "Part" }, { title: "Bytes", numeric: true }, { title: "Share", numeric: true }, { title: "Blocks", numeric: true }];
  replace(list, table(`Memory at the peak by ${key === "op" ? "operator" : key}`, columns, rows));
}

/** A node of which all is in one other, as one with it. */
function joined(node: Node): Node {
  const [only] = node.children;
  return node.children.length === 1 && only.bytes === node.bytes ? joined({ ...only, name: `${node.name} > ${only.name}` }) : node;
}

/** The children of a node, and what is in none of them. */
function withRest(node: Node): Node[] {
  const { children } = node;
  const bytes = children.reduce((rest, child) => rest - child.bytes, node.bytes);
  const blocks = children.reduce((rest, child) => rest - child.blocks, node.blocks);
  return bytes > 0 ? [...children, { name: `${node.name} itself`, bytes, blocks, role: node.role, children: [] }].sort((a, b) => b.bytes - a.bytes) : children;
}

function tile(node: Node, box: Box, whole: number, width: number, kind: string): HTMLElement {
  const label = `${node.name}: ${bytes(node.bytes)}, ${percent(node.bytes, whole)}, ${plural(node.blocks, "block")}`;
  const element = h("div", { class: `tile ${kind}`, title: label });
  const { style } = element;
  style.left = `${(100 * box.x) / width}%`;
  style.top = `${box.y}px`;
  style.width = `calc(${(100 * box.width) / width}% - 1px)`;
  style.height = `${Math.max(0, box.height - 1)}px`;
  const hue = roleColor(node.role);
  style.backgroundColor = hue;
  style.color = ink(hue);
  if (box.width > 56 && box.height > 18) {
    const size = bytes(node.bytes);
    const text = h("div", {}, h("b", {}, shortLine(node.name)), size.length * DIGIT < box.width - 12 && h("span", {}, size));
    // Whole lines.
    text.style.maxHeight = `${LINE * (kind.endsWith("group") ? 1 : Math.max(1, Math.floor((box.height - 4) / LINE)))}px`;
    element.append(text);
  }
  return element;
}

function swatch(role: string, text: string): HTMLElement {
  const mark = h("i", { class: "swatch", aria: { hidden: "true" } });
  mark.style.backgroundColor = roleColor(role);
  return h("span", {}, mark, text);
}

/** What the run met, what would help, each as an answer of its own, and what is large. */
function fitting(run: Run): HTMLElement {
  const { answer } = run;
  const rows: [string, string][] = [];
  const oom = answer.out_of_memory;
  if (oom) {
    const phase = oom.at ? phaseOf(run, oom.at) : "";
    const at = phase === "" ? "" : ` in ${phase}`;
    rows.push(["Out of memory", `tried to allocate ${bytes(oom.tried_bytes)}${at}, with ${bytes(oom.free_bytes)} free; ${bytes(oom.reserved_bytes)} reserved, ${bytes(oom.allocated_bytes)} of it allocated`]);
  }
  if (run.smallestDevice !== null) rows.push(["Smallest device", `${bytes(run.smallestDevice)} of memory, found by replays`]);
  else if (oom && answer.need_bytes !== null) rows.push(["Smallest device", `${bytes(answer.need_bytes)} of memory, found by replays`]);
  const { at, unused_bytes: unused, reserved_bytes: reserved } = answer.fragmentation;
  const moment = at === "out_of_memory" ? "at the out-of-memory" : "at the peak allocated";
  rows.push(["Fragmentation", `${bytes(unused)} (${percent(unused, reserved)}) of the ${bytes(reserved)} reserved ${moment} hold no tensor`]);
  const list = h("dl", { class: "facts" });
  for (const [term, text] of rows) list.append(h("dt", {}, term), h("dd", {}, text));
  const section = h("section", { class: "card", id: "fitting", aria: { label: "What would make it fit" } }, h("h2", {}, answer.decision === "fits" ? "What would make it smaller" : "What would make it fit"), list);
  const moved = run.whatIfs.filter((other) => other.device_bytes !== answer.peak.device_bytes || other.allocated_bytes !== answer.peak.allocated_bytes || other.decision !== answer.decision);
  if (run.whatIfs.length > 0) {
    moved.sort((a, b) => a.device_bytes - b.device_bytes);
    const cells = moved.map((other) => [
      h("code", {}, other.options),
      change(other.allocated_bytes - answer.peak.allocated_bytes),
      change(other.device_bytes - answer.peak.device_bytes, other.options),
      decided(other),
    ]);
    const columns = [{ title: "Setting" }, { title: "Peak allocated", numeric: true }, { title: "In nvidia-smi", numeric: true }, { title: "Verdict" }];
    const same = run.whatIfs.length - moved.length;
    if (cells.length > 0) section.append(table("Other settings, each alone", columns, cells));
    section.append(h("p", { class: "muted" }, same > 0 ? `Tried without effect: ${run.whatIfs.filter((other) => !moved.includes(other)).map((other) => other.options).join(", ")}` : ""));
  }
  const large = Object.entries(answer.by_role).filter(([role, share]) => role in HELPS && share > 0.15 * answer.peak.allocated_bytes);
  large.sort((a, b) => b[1] - a[1]);
  if (large.length > 0) {
    const advice = h("dl", { class: "facts" });
    for (const [role, share] of large) advice.append(h("dt", {}, words(role)), h("dd", {}, `${bytes(share)}: ${HELPS[role]}`));
    section.append(h("h3", {}, "What the large parts depend on"), advice);
  }
  return section;
}

/** What changes the memory of a role. */
const HELPS: Record<string, string> = {
  activation: "batch size and sequence length, activation checkpointing, autocast",
  optimizer_state: "the optimizer, the data type of the parameters, sharding over ranks (ZeRO, FSDP)",
  gradient: "where gradients are cleared, the data type of the parameters, sharding over ranks",
  parameter: "the data type, sharding over ranks (FSDP)",
  workspace: "CUBLAS_WORKSPACE_CONFIG, the plans of convolutions",
  temporary: "the size of single operators: smaller pieces of work, fused kernels",
};

function change(value: number, of?: string): HTMLElement {
  const data = of === undefined ? undefined : { options: of, bytes: value.toString() };
  return h("span", { class: value > 0 ? "more" : value < 0 ? "less" : "muted", data }, signed(value));
}

function iterations(answer: Answer): HTMLElement {
  const rows = answer.per_iteration.map((row) => [
    row.iteration === null ? "before" : row.iteration.toString(),
    bytes(row.allocated_bytes),
    bytes(row.reserved_bytes),
  ]);
  const columns = [{ title: "Iteration" }, { title: "Allocated", numeric: true }, { title: "Reserved", numeric: true }];
  const shown = rows.length > 24 ? [...rows.slice(0, 12), ["…", "", ""], ...rows.slice(-11)] : rows;
  return h("section", { class: "card", aria: { label: "Peaks by iteration" } }, h("h2", {}, "Peaks by iteration"), table("Peaks by iteration", columns, shown));
}
