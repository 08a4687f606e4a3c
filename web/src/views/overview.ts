// Overview: the verdict, the three figures with their range, what is alive at the peak, and what would make it fit.

import type { App, View } from "../app";
import type { Answer, Bounds } from "../data/page";
import { TREES, tree, type Node, type TreeKey } from "../data/tree";
import { squarified } from "../draw/treemap";
import { choice, h, replace, table } from "../ui/dom";
import { bytes, count, percent, plural, words } from "../ui/format";
import { ink, roleColor } from "../ui/palette";
import { when } from "../ui/block";

const KEYS = [...TREES].reverse().filter(([name]) => name !== "stack");

/** Boxes of the treemap, at most. */
const MAX_BOXES = 160;

export function overview(app: App): View {
  const root = h("div", { class: "overview" });
  let key: TreeKey = "role";
  const map = h("div", { class: "treemap" });
  const list = h("div");
  const redraw = (): void => drawTree(app, key, map, list);
  const draw = (): void => {
    const { answer } = app.run;
    const keys = choice("Group by", KEYS, key, (chosen) => {
      key = chosen;
      redraw();
    });
    replace(
      root,
      verdict(answer),
      figures(answer),
      h(
        "section",
        { class: "card wide", aria: { label: "Memory at the peak" } },
        h("header", {}, h("h2", {}, "Memory at the peak"), h("p", { class: "muted", id: "at-peak", data: { bytes: (app.run.allocated[app.run.peak] ?? 0).toString() } }, `${bytes(app.run.allocated[app.run.peak] ?? 0)} in ${when(app.run, app.run.peak)}`), keys),
        map,
        list,
      ),
      fitting(answer),
      iterations(answer),
      notes(answer),
    );
    redraw();
  };
  return { root, draw };
}

const VERDICTS: Record<string, string> = {
  fits: "Fits",
  does_not_fit: "Does not fit",
  damaged_fits: "Fits, by a damaged recording",
  damaged_does_not_fit: "Does not fit, by a damaged recording",
  withheld: "No verdict",
};

function verdict(answer: Answer): HTMLElement {
  const name = VERDICTS[answer.verdict] ?? words(answer.verdict);
  const place = answer.peak.at;
  const parts = [place?.module, place?.op, place?.line].filter((part): part is string => !!part);
  return h(
    "section",
    { class: "verdict", data: { verdict: answer.verdict }, aria: { label: "Verdict" } },
    h("p", { class: "word", id: "verdict" }, name),
    h(
      "div",
      {},
      h("p", {}, `on ${answer.device.title || answer.device.name}, ${bytes(answer.device.memory_bytes)}`),
      h("p", { class: "muted" }, headroom(answer)),
    ),
    place &&
      h(
        "div",
        { class: "place" },
        h("p", {}, `Peak in ${place.iteration === null ? "" : `iteration ${place.iteration}, `}${words(place.phase)}`),
        h("p", { class: "muted" }, parts.join(" · ")),
      ),
  );
}

function headroom(answer: Answer): string {
  if (answer.shortfall_bytes !== null) return `${bytes(answer.shortfall_bytes)} more than the device has are needed`;
  if (answer.headroom_bytes === null) return "no headroom";
  return `${bytes(answer.headroom_bytes)} stay free (${percent(answer.headroom_bytes, answer.device.memory_bytes)})`;
}

function figures(answer: Answer): HTMLElement {
  const { peak, range } = answer;
  const most = Math.max(range.device_bytes.high, peak.device_bytes, answer.device.memory_bytes);
  const figure = (id: string, name: string, source: string, value: number, bounds: Bounds): HTMLElement =>
    h(
      "section",
      { class: "card figure", id: `figure-${id}`, data: { bytes: value.toString() }, aria: { label: name } },
      h("h2", {}, name),
      h("p", { class: "value" }, bytes(value)),
      rangeBar(value, bounds, most),
      h("p", { class: "muted" }, bounds.low === bounds.high ? "no uncertainty" : `${bytes(bounds.low)} to ${bytes(bounds.high)}`),
      h("p", { class: "muted source" }, source),
    );
  return h(
    "div",
    { class: "figures" },
    figure("allocated", "Peak allocated", "torch.cuda.max_memory_allocated()", peak.allocated_bytes, range.allocated_bytes),
    figure("reserved", "Peak reserved", "torch.cuda.max_memory_reserved()", peak.reserved_bytes, range.reserved_bytes),
    figure("device", "In nvidia-smi", `reserved + context of ${bytes(answer.device.context_bytes)}`, peak.device_bytes, range.device_bytes),
  );
}

/** Value and range on a bar as long as the device's memory. */
function rangeBar(value: number, bounds: Bounds, most: number): HTMLElement {
  const bar = h("div", { class: "range", aria: { hidden: "true" } });
  const part = (name: string, from: number, to: number): void => {
    const element = h("i", { class: name });
    element.style.left = `${(100 * from) / most}%`;
    element.style.width = `${(100 * (to - from)) / most}%`;
    bar.append(element);
  };
  part("value", 0, value);
  part("spread", bounds.low, bounds.high);
  return bar;
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
  const top = limited(root.children);
  const outer = squarified(top.map((node) => node.bytes), { x: 0, y: 0, width, height });
  top.forEach((node, at) => {
    const place = outer[at];
    const inner = limited(node.children);
    const hasRoom = place.width > 60 && place.height > 40 && inner.length > 1;
    map.append(tile(node, place, root.bytes, width, hasRoom ? "group" : "leaf"));
    if (!hasRoom) return;
    const within = { x: place.x + 2, y: place.y + 20, width: place.width - 4, height: place.height - 22 };
    const boxes = squarified(inner.map((child) => child.bytes), within);
    inner.forEach((child, number) => {
      if (boxes[number].width >= 3 && boxes[number].height >= 3) map.append(tile(child, boxes[number], root.bytes, width, "inner"));
    });
  });
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

function limited(nodes: Node[]): Node[] {
  return nodes.filter((node) => node.bytes > 0).slice(0, MAX_BOXES);
}

function tile(node: Node, box: { x: number; y: number; width: number; height: number }, whole: number, width: number, kind: string): HTMLElement {
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
    element.append(h("b", {}, node.name), h("span", {}, bytes(node.bytes)));
  }
  return element;
}

function swatch(role: string, text: string): HTMLElement {
  const mark = h("i", { class: "swatch", aria: { hidden: "true" } });
  mark.style.backgroundColor = roleColor(role);
  return h("span", {}, mark, text);
}

function fitting(answer: Answer): HTMLElement {
  const rows: [string, string][] = [];
  const oom = answer.out_of_memory;
  if (oom) {
    const at = oom.at ? ` in ${oom.at.iteration === null ? "" : `iteration ${oom.at.iteration}, `}${words(oom.at.phase)}` : "";
    rows.push(["Out of memory", `${bytes(oom.requested_bytes)} were requested${at}, ${bytes(oom.free_bytes)} were free on the device`]);
    rows.push(["Then", `${bytes(oom.allocated_bytes)} allocated, ${bytes(oom.reserved_bytes)} reserved`]);
    rows.push(["Needed", `${bytes(oom.needed_bytes)} of device memory`]);
  }
  if (answer.min_capacity_bytes !== null) rows.push(["Smallest device", bytes(answer.min_capacity_bytes)]);
  const roles = Object.entries(answer.by_role).sort((a, b) => b[1] - a[1]);
  const share = (role: string): number => answer.by_role[role] ?? 0;
  const advice = (role: string, text: string): void => {
    if (share(role) > 0.1 * answer.peak.allocated_bytes) rows.push([words(role), `${bytes(share(role))}: ${text}`]);
  };
  if (roles.length > 0) {
    advice("activation", "a smaller batch, activation checkpointing, or autocast make it smaller");
    advice("optimizer_state", "an optimizer with less state, or sharding over ranks (ZeRO, FSDP)");
    advice("gradient", "gradients that are freed earlier (zero_grad before the forward), or sharding over ranks");
    advice("parameter", "a smaller data type, or sharding over ranks (FSDP)");
    advice("workspace", "a smaller CUBLAS_WORKSPACE_CONFIG, or other convolution plans");
  }
  const unused = answer.fragmentation.unused_bytes;
  if (unused > 0.1 * answer.peak.reserved_bytes) {
    rows.push(["Fragmentation", `${bytes(unused)} of reserved memory hold no tensor: try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`]);
  }
  const list = h("dl", { class: "facts" });
  for (const [term, text] of rows) list.append(h("dt", {}, term), h("dd", {}, text));
  return h("section", { class: "card", aria: { label: "What would make it fit" } }, h("h2", {}, answer.verdict === "fits" ? "What acts on it" : "What would make it fit"), list);
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

function notes(answer: Answer): HTMLElement | null {
  if (answer.diagnostics.length === 0) return null;
  const list = h("ul", { class: "notes" });
  for (const note of answer.diagnostics) {
    list.append(h("li", { data: { severity: note.severity } }, h("b", {}, note.severity), ` ${note.message}`, note.count > 1 ? h("span", { class: "muted" }, ` (${count(note.count)} times)`) : null));
  }
  return h("section", { class: "card wide", aria: { label: "Notes" } }, h("h2", {}, "Notes"), list);
}
