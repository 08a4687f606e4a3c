// Rules and uncertainty: what changed from the CPU to the GPU, block by block, and which doubts move the figures.

import type { App, View } from "../app";
import type { Answer, Bounds, Rule } from "../data/page";
import type { Run } from "../data/run";
import { blockTable, panel } from "../ui/block";
import { code, h, replace, table } from "../ui/dom";
import { bounds as boundsText, bytes, count, plural, signed, words } from "../ui/format";

const MAX_ROWS = 60;

export function rules(app: App): View {
  const root = h("div", { class: "rules" });
  let open: string | null = null;
  const draw = (): void => {
    const { run } = app;
    const chosen = h("div", { id: "rule-blocks" });
    replace(root, uncertainty(run.answer), effects(run, (rule) => { open = rule; drawBlocks(chosen); chosen.scrollIntoView({ block: "nearest" }); }), chosen);
    drawBlocks(chosen);
  };
  const drawBlocks = (place: HTMLElement): void => {
    const { run } = app;
    const number = open === null ? -1 : run.rules.indexOf(open) + 1;
    if (open === null) {
      replace(place);
      return;
    }
    const rows: number[] = [];
    for (let row = 0; number > 0 && row < run.blocks; row++) if (run.rule[row] === number) rows.push(row);
    rows.sort((a, b) => run.size[b] - run.size[a] || a - b);
    const choose = (row: number | null): void => {
      app.block = row;
      drawBlocks(place);
    };
    replace(
      place,
      app.block === null ? null : panel(app, app.block, () => choose(null)),
      changes(run, rows),
      rows.length > 0 && blockTable(app, `Largest of ${plural(rows.length, "block")} that ${open} added, resized or moved in time`, rows, choose, { most: MAX_ROWS, last: "recorded" }),
      leftOut(run, open),
    );
  };
  return { root, draw };
}

/** The recorded blocks that a rule left out. */
function leftOut(run: Run, rule: string): HTMLElement | null {
  const blocks = run.leftOut.filter((block) => block.rule === rule);
  if (blocks.length === 0) return null;
  const all = run.answer.rules?.find((one) => one.rule === rule)?.dropped.blocks ?? blocks.length;
  const rows = blocks.slice(0, MAX_ROWS).map((block) => [
    bytes(block.bytes),
    words(block.role),
    block.op || "–",
    block.module || "–",
    block.line || "–",
    `${block.iteration === null ? "" : `iteration ${block.iteration}, `}${words(block.phase)}`,
  ]);
  const columns = [{ title: "Size", numeric: true }, { title: "Role" }, { title: "Operator" }, { title: "Module" }, { title: "Line" }, { title: "Allocated in" }];
  return table(`Largest of ${plural(all, "recorded block")} that ${rule} drops`, columns, rows);
}

/** What blocks were on the CPU and are on the GPU. */
function changes(run: Run, rows: number[]): HTMLElement {
  let [added, before, after, recorded] = [0, 0, 0, 0];
  for (const row of rows) {
    if (run.recorded[row] === 0) added += run.asked[row];
    else {
      recorded++;
      before += run.recorded[row] - 1;
      after += run.asked[row];
    }
  }
  const parts: string[] = [];
  const made = rows.length - recorded;
  if (made > 0) parts.push(`${plural(made, "block")} with ${bytes(added)} ${made === 1 ? "is" : "are"} not in the recording.`);
  if (recorded > 0) {
    const change = before === after ? `of ${bytes(after)} in all keep their size` : `of ${bytes(before)} in all become ${bytes(after)}`;
    parts.push(`${plural(recorded, "recorded block")} ${change}.`);
  }
  return h("p", { class: "status plain" }, parts.join(" "));
}

function uncertainty(answer: Answer): HTMLElement {
  const { range, peak } = answer;
  const all = range.uncertainties;
  const heading = h("header", {}, h("h2", {}, "Uncertainty"), h("p", { class: "muted" }, `confidence: ${range.confidence}`));
  if (all.length === 0) {
    return h("section", { class: "card", aria: { label: "Uncertainty" } }, heading, h("p", {}, "Nothing about this run is uncertain."));
  }
  const figure = (of: "allocated_bytes" | "reserved_bytes"): Scale => {
    const bounds = [range[of], ...all.map((one) => one[of])];
    return { value: peak[of], least: Math.min(peak[of], ...bounds.map(({ low }) => low)), most: Math.max(peak[of], ...bounds.map(({ high }) => high)) };
  };
  const scales = [figure("allocated_bytes"), figure("reserved_bytes")];
  const text = (bounds: Bounds, value: number): string => (bounds.low === bounds.high ? "no change" : `${signed(bounds.low - value)} … ${signed(bounds.high - value)}`);
  const row = (name: string, blocks: number | null, allocated: Bounds, reserved: Bounds): (HTMLElement | string)[] => [
    name,
    blocks === null ? "–" : count(blocks),
    text(allocated, peak.allocated_bytes),
    doubt(allocated, scales[0]),
    text(reserved, peak.reserved_bytes),
    doubt(reserved, scales[1]),
  ];
  const sorted = [...all].sort((a, b) => b.reserved_bytes.high - b.reserved_bytes.low - (a.reserved_bytes.high - a.reserved_bytes.low));
  const rows = sorted.map((one) => row(words(one.name), one.blocks, one.allocated_bytes, one.reserved_bytes));
  rows.push(row("all together", null, range.allocated_bytes, range.reserved_bytes));
  const columns = [
    { title: "Doubt" },
    { title: "Blocks", numeric: true },
    { title: "Peak allocated", numeric: true },
    { title: scaleText(scales[0]) },
    { title: "Peak reserved", numeric: true },
    { title: scaleText(scales[1]) },
  ];
  return h("section", { class: "card doubts", aria: { label: "Uncertainty" } }, heading, table("Doubts and their effect", columns, rows));
}

/** What a bar is as long as. */
interface Scale {
  value: number;
  least: number;
  most: number;
}

function scaleText({ value, least, most }: Scale): string {
  return least === most ? bytes(value) : boundsText(value, least, most);
}

function doubt(bounds: Bounds, { value, least, most }: Scale): HTMLElement {
  const place = h("div", { class: "doubt", aria: { hidden: "true" } });
  const share = (bytes: number): number => (least === most ? 50 : (100 * (bytes - least)) / (most - least));
  const part = (name: string, from: number, to: number): void => {
    const element = h("i", { class: name });
    element.style.left = `${share(from)}%`;
    element.style.width = `${share(to) - share(from)}%`;
    place.append(element);
  };
  part("low", bounds.low, Math.max(bounds.low, Math.min(value, bounds.high)));
  part("high", Math.min(bounds.high, Math.max(value, bounds.low)), bounds.high);
  part("now", value, value);
  return place;
}

function effects(run: Run, choose: (rule: string) => void): HTMLElement {
  const all = run.answer.rules ?? [];
  const acted = all.filter((rule) => rule.dropped.blocks + rule.added.blocks + rule.resized.blocks + rule.retimed.blocks > 0);
  const heading = h("header", {}, h("h2", {}, "Rules"), h("p", { class: "muted" }, `${acted.length} of ${plural(all.length, "rule")} had an effect: from what was recorded to what a GPU's allocator is asked for`));
  if (acted.length === 0) {
    return h("section", { class: "card", aria: { label: "Rules" } }, heading, h("p", {}, "The requests are as they were recorded."));
  }
  const atPeak = new Map<string, number>();
  for (const row of run.moments > 0 ? run.allocatedAt(run.peak) : []) {
    const rule = run.ruleName(row);
    if (rule) atPeak.set(rule, (atPeak.get(rule) ?? 0) + run.size[row]);
  }
  const part = (change: { blocks: number; bytes: number }): string => (change.blocks === 0 ? "" : `${bytes(change.bytes)} in ${count(change.blocks)}`);
  const resized = ({ resized }: Rule): string => (resized.blocks === 0 ? "" : `${signed(resized.bytes_after - resized.bytes_before)} in ${count(resized.blocks)}`);
  const weight = (rule: Rule): number => (atPeak.get(rule.rule) ?? 0) * 4 + rule.dropped.bytes / 1e6;
  acted.sort((a, b) => weight(b) - weight(a));
  const changed = new Set(run.leftOut.map((block) => block.rule));
  for (const rule of new Set(run.rule)) if (rule > 0) changed.add(run.rules[rule - 1]);
  const rows = acted.map((rule) => [
    changed.has(rule.rule) ? h("button", { class: "link", on: { click: () => choose(rule.rule) } }, rule.rule) : rule.rule,
    h("span", {}, ...code(rule.summary), h("span", { class: "muted small" }, " ", ...code(rule.source))),
    atPeak.has(rule.rule) ? bytes(atPeak.get(rule.rule) ?? 0) : "",
    part(rule.dropped),
    part(rule.added),
    resized(rule),
    rule.retimed.blocks === 0 ? "" : count(rule.retimed.blocks),
  ]);
  const columns = [
    { title: "Rule" },
    { title: "What it does" },
    { title: "At the peak", numeric: true },
    { title: "Dropped", numeric: true },
    { title: "Added", numeric: true },
    { title: "Resized", numeric: true },
    { title: "Moved in time", numeric: true },
  ];
  return h("section", { class: "card", aria: { label: "Rules" } }, heading, table("Effect of each rule", columns, rows));
}
