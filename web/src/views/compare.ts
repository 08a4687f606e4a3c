// Compare: two runs or two settings side by side.

import type { App, View } from "../app";
import { aligned, mostAligned, numbered } from "../data/align";
import { atPeak, divergence } from "../data/divergence";
import type { Run } from "../data/run";
import { onFrame, steps, Surface } from "../draw/canvas";
import { facts, title } from "../ui/block";
import { h, replace, table } from "../ui/dom";
import { bytes, count, plural, signed, signedCount, tick, ticks, words } from "../ui/format";
import { variable } from "../ui/palette";
import { decided } from "../ui/answer";

/** The rows of the table of modules. */
const MAX_ROWS = 20;
/** The phases of the table of the curves. */
const MAX_PHASES = 60;

export function compare(app: App): View {
  let other = app.runs.find((run) => run !== app.run) ?? app.run;
  const select = h("select", { id: "other" });
  const plot = new Surface("Allocated and reserved memory of both runs, phase by phase");
  plot.canvas.className = "both";
  const root = h("div", { class: "compare" });
  select.addEventListener("change", () => {
    other = app.runs[Number(select.value)];
    draw();
  });
  const paint = onFrame(() => drawBoth(plot, app, other));
  const draw = (): void => {
    if (other === app.run) other = app.runs.find((run) => run !== app.run) ?? app.run;
    replace(select, ...app.runs.map((run, at) => (run === app.run ? null : h("option", { value: at.toString() }, run.name))));
    select.value = app.runs.indexOf(other).toString();
    replace(
      root,
      h("div", { class: "controls" }, h("p", { class: "pair" }, h("i", { class: "mark one" }), app.run.name), h("label", { class: "field" }, h("span", {}, "against"), select)),
      figures(app.run, other),
      h("section", { class: "card", aria: { label: "Memory over time" } }, h("h2", {}, "Memory over time"), plot.canvas, h("p", { class: "legend plain" }, h("i", { class: "mark one" }), app.run.name, h("i", { class: "mark two" }), other.name, h("span", { class: "muted aside" }, "thick: allocated, thin: reserved")), byPhase(app, other)),
      parts("By role at the peak", "Role", app.run, other, (run) => (row) => words(run.roleName(row))),
      parting(app.run, other),
      parts("By module at the peak", "Module", app.run, other, (run) => (row) => run.texts[run.module[row]] || "(no module)"),
    );
    paint();
  };
  return { root, draw };
}

function figures(one: Run, other: Run): HTMLElement {
  const [a, b] = [one.answer, other.answer];
  const row = (name: string, left: number, right: number): (HTMLElement | string)[] => [name, bytes(left), bytes(right), delta(right - left)];
  const rows = [
    ["Verdict", decided(a), decided(b), ""],
    ["Device", a.device.name, b.device.name, ""],
    row("Peak allocated", a.peak.allocated_bytes, b.peak.allocated_bytes),
    row("Peak reserved", a.peak.reserved_bytes, b.peak.reserved_bytes),
    row("In nvidia-smi", a.peak.device_bytes, b.peak.device_bytes),
    row("Reserved, holds no tensor", a.fragmentation.unused_bytes, b.fragmentation.unused_bytes),
    ["Allocations", count(one.blocks), count(other.blocks), signedCount(other.blocks - one.blocks)],
  ];
  const columns = [{ title: "" }, { title: one.name, numeric: true }, { title: other.name, numeric: true }, { title: "Difference", numeric: true }];
  return h("section", { class: "card", id: "compared", aria: { label: "Figures" } }, h("h2", {}, "Figures"), table("Figures of both runs", columns, rows));
}

function delta(value: number): HTMLElement {
  return h("span", { class: value > 0 ? "more" : value < 0 ? "less" : "muted", data: { bytes: value.toString() } }, signed(value));
}

function parts(heading: string, column: string, one: Run, other: Run, name: (run: Run) => (row: number) => string): HTMLElement {
  const [left, right] = [atPeak(one, name(one)), atPeak(other, name(other))];
  const names = [...new Set([...left.keys(), ...right.keys()])];
  const change = (key: string): number => (right.get(key) ?? 0) - (left.get(key) ?? 0);
  names.sort((a, b) => Math.abs(change(b)) - Math.abs(change(a)) || (left.get(b) ?? 0) - (left.get(a) ?? 0));
  const most = Math.max(1, ...names.map((key) => Math.abs(change(key))));
  const rows = names.slice(0, MAX_ROWS).map((key) => {
    const value = change(key);
    const bar = h("div", { class: "change", aria: { hidden: "true" } }, h("i", { class: value > 0 ? "more" : "less" }));
    const { style } = bar.firstElementChild as HTMLElement;
    const width = (50 * Math.abs(value)) / most;
    style.width = `${width}%`;
    style.left = `${value > 0 ? 50 : 50 - width}%`;
    return [key, bytes(left.get(key) ?? 0), bytes(right.get(key) ?? 0), delta(value), bar];
  });
  const columns = [{ title: column }, { title: one.name, numeric: true }, { title: other.name, numeric: true }, { title: "Difference", numeric: true }, { title: "less | more" }];
  const more = names.length > MAX_ROWS ? h("p", { class: "muted" }, `${names.length - MAX_ROWS} more with smaller differences`) : null;
  return h("section", { class: "card", aria: { label: heading } }, h("h2", {}, heading), table(heading, columns, rows), more);
}

function parting(one: Run, other: Run): HTMLElement {
  const found = divergence(one, other);
  const section = h("section", { class: "card", id: "divergence", aria: { label: "First divergence" } }, h("h2", {}, "First divergence"));
  if (!found) {
    section.append(h("p", {}, `Both runs ask for the same memory: all ${count(one.blocks)} allocations have the same size and, where both are known, the same operator.`));
    return section;
  }
  section.append(h("p", {}, found.same === 0 ? "The runs differ from the first allocation on:" : `The first ${plural(found.same, "allocation")} have the same size and, where both are known, the same operator. Then:`));
  const side = (run: Run, row: number | null): HTMLElement => {
    if (row === null) return h("div", {}, h("h3", {}, run.name), h("p", {}, "has no further allocation"));
    const list = h("dl", { class: "facts" });
    for (const [term, text] of facts(run, row)) list.append(h("dt", {}, term), h("dd", {}, text));
    return h("div", {}, h("h3", {}, `${run.name}: ${title(run, row)}`), list);
  };
  section.append(h("div", { class: "sides" }, side(one, found.rows[0]), side(other, found.rows[1])));
  return section;
}

/** The curves as a table: the most that is allocated in each phase of an iteration. */
function byPhase(app: App, other: Run): HTMLElement | null {
  const one = app.run;
  const places = new Map(numbered(other));
  const rows = numbered(one).flatMap(([name, span]) => {
    const there = places.get(name);
    if (!there || span.end <= span.start || there.end <= there.start) return [];
    const left = one.allocated[app.maxima("allocated").at(span.start, span.end)];
    const right = other.allocated[app.maxima("allocated", other).at(there.start, there.end)];
    return [[`${span.iteration === null ? "" : `iteration ${span.iteration}, `}${words(span.phase)}`, bytes(left), bytes(right), delta(right - left)]];
  });
  if (rows.length === 0) return null;
  const columns = [{ title: "Phase" }, { title: one.name, numeric: true }, { title: other.name, numeric: true }, { title: "Difference", numeric: true }];
  const caption = `Highest allocated memory by phase${rows.length > MAX_PHASES ? `, the first ${MAX_PHASES} of ${rows.length}` : ""}`;
  return h("details", {}, h("summary", {}, "The curves as a table"), table(caption, columns, rows.slice(0, MAX_PHASES)));
}

function drawBoth(plot: Surface, app: App, other: Run): void {
  const one = app.run;
  if (!plot.fit()) return;
  const context = plot.clear();
  const most = Math.max(1, ...[one, other].flatMap((run) => [run.allocated[run.peak] ?? 0, run.reserved[run.reservedPeak] ?? 0])) * 1.05;
  context.font = `11px ${variable("--sans")}`;
  for (const mark of ticks(most, 4)) {
    const y = Math.round(plot.height - (mark / most) * plot.height) + 0.5;
    context.strokeStyle = variable("--line");
    context.beginPath();
    context.moveTo(0, y);
    context.lineTo(plot.width, y);
    context.stroke();
    context.fillStyle = variable("--muted");
    if (mark > 0) context.fillText(tick(mark), 2, y > 16 ? y - 3 : y + 11);
  }
  const scale = one.moments / plot.width;
  const column = (x: number): [number, number] => {
    const from = Math.min(one.moments - 1, Math.floor(x * scale));
    return [from, Math.max(from + 1, Math.min(one.moments, Math.floor((x + 1) * scale)))];
  };
  if (one.moments === 0 || other.moments === 0) return;
  const at = aligned(one, other);
  for (const figure of ["reserved", "allocated"] as const) {
    const [maxima, others] = [app.maxima(figure), app.maxima(figure, other)];
    context.lineWidth = figure === "allocated" ? 1.75 : 0.75;
    context.strokeStyle = variable("--accent");
    steps(context, plot.width, plot.height, most, (x) => one[figure][maxima.at(...column(x))]);
    context.strokeStyle = variable("--second");
    context.setLineDash([6, 4]);
    steps(context, plot.width, plot.height, most, (x) => mostAligned(at, other[figure], others, ...column(x)));
    context.setLineDash([]);
  }
}
