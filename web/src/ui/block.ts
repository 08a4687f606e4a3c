// A block in words.

import type { App } from "../app";
import { NEVER, type Run } from "../data/run";
import { breakable, h, scrolled } from "./dom";
import { bytes, count, duration, plural, request, words } from "./format";
import { roleColor } from "./palette";

/** `iteration 1, backward`. Of a recording without phases, that of the block that is allocated then; empty if not known. */
export function when(run: Run, moment: number): string {
  if (!run.hasPhases) {
    const row = run.event[moment] - 1;
    const phase = row >= 0 ? run.phases[run.phase[row]] : "init";
    return phase === "init" ? "" : words(phase);
  }
  const span = run.spanAt(moment);
  if (!span) return "";
  const phase = words(span.phase);
  return span.iteration === null ? phase : `iteration ${span.iteration}, ${phase}`;
}

export function title(run: Run, row: number): string {
  return `${bytes(run.size[row])} ${words(run.roleName(row))}`;
}

/** What is known about a block, as pairs of a term and its description. */
export function facts(run: Run, row: number): [string, string][] {
  const list: [string, string][] = [];
  const add = (term: string, text: string | null): void => void (text && list.push([term, text]));
  add("Operator", run.texts[run.op[row]]);
  add("Module", run.texts[run.module[row]]);
  add("Line", run.texts[run.line[row]]);
  add("Allocated", `${when(run, run.start[row])} (request ${request(run.start[row])})`.trim());
  add("Lifetime", lifetime(run, row));
  if (run.asked[row] !== run.size[row]) add("Requested", `${bytes(run.asked[row])} of ${bytes(run.size[row])}`);
  const rule = run.ruleName(row);
  if (rule) add("Rule", rule);
  if (run.recorded[row] > 0 && run.recorded[row] - 1 !== run.asked[row]) {
    add("Recorded as", bytes(run.recorded[row] - 1));
  }
  add("Evidence", run.evidences[run.evidence[row]]);
  return list;
}

function lifetime(run: Run, row: number): string {
  const [start, freed, end] = [run.start[row], run.freed[row], run.end[row]];
  if (freed === NEVER) return "never freed";
  const text = `${plural(freed - start, "request")}, ${duration(run.time[freed] - run.time[start])}`;
  const wait = end === NEVER ? ", then waits for another stream" : end > freed ? `, then ${plural(end - freed, "request")} until another stream is done` : "";
  return text + wait;
}

/** All of a block: for the panel beside a picture. */
export function panel(app: App, row: number, close: () => void): HTMLElement {
  const { run } = app;
  const list = h("dl", { class: "facts" });
  const path = run.pathOf(row);
  const all = facts(run, row);
  all.push(["Stream", run.stream[row].toString()], ["Address", `0x${run.addr[row].toString(16)}`]);
  for (const [term, text] of all) list.append(h("dt", {}, term), h("dd", {}, text));
  if (path.length > 0) {
    list.append(h("dt", {}, "Operators"), h("dd", {}, h("ol", { class: "path" }, ...path.map((name) => h("li", {}, name)))));
  }
  const show = (view: "allocator" | "peak", moment: number): void => {
    app.goTo(moment);
    app.open(view);
  };
  return h(
    "section",
    { class: "panel", aria: { label: "Chosen block" } },
    h(
      "header",
      {},
      h("h3", {}, title(run, row)),
      h("button", { class: "plain", aria: { label: "Close" }, on: { click: close } }, "×"),
    ),
    list,
    h(
      "p",
      { class: "actions" },
      h("button", { on: { click: () => show("allocator", run.start[row]) } }, "Show in allocator"),
      h("button", { on: { click: () => show("peak", run.start[row]) } }, "All blocks at its allocation"),
    ),
  );
}

/** The colors of roles. */
export function roleLegend(run: Run): HTMLElement {
  return rolesLegend(run, run.role);
}

/** The colors of the roles of some blocks. */
export function rolesLegend(run: Run, of: Iterable<number>): HTMLElement {
  const used = new Set(of);
  const legend = h("p", { class: "legend plain" });
  run.roles.forEach((role, at) => {
    if (!used.has(at)) return;
    const mark = h("i", { class: "swatch", aria: { hidden: "true" } });
    mark.style.backgroundColor = roleColor(role);
    legend.append(h("span", { class: "entry" }, mark, words(role)));
  });
  return legend;
}

/** What a block was in the recording. */
function asRecorded(run: Run, row: number): string {
  if (run.recorded[row] === 0) return "not there";
  return run.recorded[row] - 1 === run.asked[row] ? "same size" : bytes(run.recorded[row] - 1);
}

/** Blocks that a table shows as one row. */
interface Alike {
  rows: number[];
  cells: string[];
}

interface BlockTableSettings {
  /** The rows of the table, at most. */
  most: number;
  /** The last column: the rule by which a block differs from the recording, or what it was there. */
  last?: "rule" | "recorded";
  /** There are more blocks of the size of the last one. */
  isCut?: boolean;
}

/** A table of blocks, which are given with the largest first. Blocks that differ in nothing that it shows are one row;
 * pressing it chooses one of them after the other. */
export function blockTable(app: App, caption: string, rows: number[], choose: (row: number) => void, { most, last = "rule", isCut = false }: BlockTableSettings): HTMLElement {
  const { run } = app;
  const body = h("tbody");
  const smallest = isCut ? run.size[rows[rows.length - 1]] : -1;
  for (const { rows: alike, cells } of groupedAlike(run, rows, most, last)) {
    const next = (): number => alike[(alike.indexOf(app.block ?? -1) + 1) % alike.length];
    const size = run.size[alike[0]];
    const open = h("button", { class: "link", on: { click: () => choose(next()) } }, bytes(size));
    const number = `${size === smallest ? "≥ " : ""}${count(alike.length)}`;
    body.append(
      h(
        "tr",
        {},
        h("td", { class: "number" }, open),
        h("td", { class: "number" }, number),
        h("td", { class: "number" }, alike.length > 1 ? bytes(size * alike.length) : ""),
        ...cells.map((text) => h("td", {}, ...breakable(text))),
      ),
    );
  }
  const titles = ["Size", "Blocks", "Together", "Role", "Operator", "Module", "Line", "Allocated in", last === "rule" ? "Rule" : "In the recording"];
  const head = titles.map((text, at) => h("th", { scope: "col", class: at < 3 ? "number" : undefined }, text));
  return scrolled(caption, h("table", { class: "blocks" }, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...head)), body));
}

function groupedAlike(run: Run, rows: number[], most: number, last: "rule" | "recorded"): Alike[] {
  const found = new Map<string, Alike>();
  let smallest = 0;
  for (const row of rows) {
    if (found.size >= most && run.size[row] < smallest) break;
    const cells = [
      words(run.roleName(row)),
      run.texts[run.op[row]] || "–",
      run.texts[run.module[row]] || "–",
      run.texts[run.line[row]] || "–",
      when(run, run.start[row]),
      last === "rule" ? (run.ruleName(row) ?? "") : asRecorded(run, row),
    ];
    const key = [run.size[row].toString(), ...cells].join("\n");
    const known = found.get(key);
    if (known) known.rows.push(row);
    else if (found.size < most) {
      found.set(key, { rows: [row], cells });
      smallest = run.size[row];
    }
  }
  return [...found.values()];
}
