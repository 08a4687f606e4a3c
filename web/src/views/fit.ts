// Fit: what the job needs with measures against the time that they cost, and what each value of a number needs.

import type { App, View } from "../app";
import { fits, slower, type Fit, type FitRow, type Fits } from "../data/fit";
import type { FitFigures, FitValues } from "../data/page";
import { onFrame } from "../draw/canvas";
import { Plot, rounded, type PlotContent, type PlotCurve, type PlotLimit, type PlotPoint, type Shape } from "../draw/plot";
import { h, replace, table } from "../ui/dom";
import { bytes, count, percent, plural } from "../ui/format";

const SHAPES: Record<Fits, Shape> = { yes: "circle", tight: "triangle", no: "ring" };
const COLORS: Record<Fits, string> = { yes: "--good", tight: "--warn", no: "--bad" };

/** The colors and dashes of the job as it is, and of measures. */
const CURVES = [
  { color: "--accent", dash: [] },
  { color: "--second", dash: [6, 4] },
  { color: "--other", dash: [2, 3] },
];

/** Other devices in a plot, at most, and how far apart in it, as a share of its height. */
const [MAX_DEVICES, APART] = [4, 0.06];

/** The rows of the table of a law. */
const MAX_ROWS = 40;

export function fitted(app: App): View {
  const root = h("div", { class: "rules fit" });
  const ladder = new Plot("Memory needed by step time, of the job as it is and with measures");
  const values = new Plot("Memory needed by value");
  const paint = onFrame(() => {
    const { fit } = app.run;
    if (!fit) return;
    if (fit.head.tried.length > 0) ladder.draw(ladderOf(fit));
    if (fit.head.values.length > 0) values.draw(valuesOf(fit));
  });
  const draw = (): void => {
    const { fit } = app.run;
    if (!fit) {
      replace(root, h("p", { class: "muted" }, "This page does not say what makes this run fit: `xmem fit --report` writes one that does."));
      return;
    }
    replace(
      root,
      h("dl", { class: "row" }, ...figures(fit)),
      fit.head.tried.length > 0 && measures(fit, ladder.root),
      suggestion(fit),
      fit.head.values.length > 0 && byValue(fit, values.root),
      notes(fit),
    );
    paint();
  };
  return { root, draw };
}

/** What is known of the job as it is, and what was found. */
function figures(fit: Fit): HTMLElement[] {
  const { head } = fit;
  const figure = (term: string, text: string, data?: Record<string, string>): HTMLElement => h("div", {}, h("dt", {}, term), h("dd", { data }, text));
  const list = [
    figure(`Needs ${fit.plain}`, bytes(head.base.needs_bytes), { figure: "needs", bytes: head.base.needs_bytes.toString() }),
    figure(`Memory of ${head.device.name}`, bytes(head.device.memory_bytes), { figure: "memory", bytes: head.device.memory_bytes.toString() }),
  ];
  if (head.suggestion) list.push(figure("Fits with", fit.names(head.suggestion.measures), { figure: "suggestion" }));
  else if (!head.base.fits && head.tried.length > 0) list.push(figure("Fits with", "nothing that was tried"));
  for (const values of head.values) {
    if (head.option && values.fits !== null) list.push(figure(`${head.option.is_fewest ? "Fewest" : "Largest"} ${head.option.name} ${fit.with(values)}`, count(values.fits), { figure: "largest", value: values.fits.toString() }));
  }
  return list;
}

/** What a variant is, in the words of the tables. */
function facts(fit: Fit, figures: FitFigures): [string, string][] {
  const { memory_bytes: memory } = fit.head.device;
  const beyond = figures.needs_bytes - memory;
  return [
    ["Needs", bytes(figures.needs_bytes)],
    ["Fits", { yes: `yes, ${bytes(-beyond)} stay free`, tight: "tight: cached memory is released for it", no: beyond > 0 ? `no, ${bytes(beyond)} too much` : "no: it did not run in this memory" }[fits(figures)]],
  ];
}

function measures(fit: Fit, plot: HTMLElement): HTMLElement {
  const { head } = fit;
  const rows = fit.rows.map((row) => [
    h("span", { data: { measure: row.name } }, row.kind === "base" || row.isSuggested ? h("b", {}, row.name) : row.name, row.isSuggested ? " (suggested)" : "", row.title === "" ? null : h("span", { class: "muted small line" }, row.title)),
    row.figures ? h("span", { data: { figure: "needs", bytes: row.figures.needs_bytes.toString() } }, bytes(row.figures.needs_bytes)) : "–",
    row.figures ? fits(row.figures) : "–",
    row.kind === "base" ? "" : row.factor === null ? "–" : slower(row.factor),
    row.changes,
    row.note,
  ]);
  const columns = [{ title: "Measure" }, { title: "Needs", numeric: true }, { title: "Fits" }, { title: "Step time", numeric: true }, { title: "Changes" }, { title: "Note" }];
  return h(
    "section",
    { class: "card", id: "measures", aria: { label: "Measures" } },
    h("header", {}, h("h2", {}, "Measures"), h("p", { class: "muted" }, `The least memory with which each recording runs on ${head.device.name}, and the time of a step by a model`)),
    plot,
    legend("the job as it is", head.suggestion !== null),
    table("Measures", columns, rows),
  );
}

/** The marks of both plots. */
function legend(square: string | null, isSuggested: boolean): HTMLElement {
  const entry = (kind: string, text: string): HTMLElement => h("span", { class: `key ${kind}` }, text);
  return h("p", { class: "legend plain keys" }, entry("yes", "fits"), entry("tight", "tight"), entry("no", "does not fit"), square !== null && entry("square", square), isSuggested && entry("ringed", "suggested"));
}

function ladderOf(fit: Fit): PlotContent {
  const shown = fit.rows.filter((row): row is FitRow & { figures: FitFigures; factor: number } => row.figures !== null && row.factor !== null);
  const weight = (row: FitRow): number => (row.isSuggested ? 2 : row.kind === "base" ? 1 : 0);
  shown.sort((a, b) => weight(b) - weight(a) || (a.figures?.needs_bytes ?? 0) - (b.figures?.needs_bytes ?? 0));
  const points = shown.map((row): PlotPoint => {
    const how = fits(row.figures);
    const time: [string, string][] = row.kind === "base" ? [] : [["Step time", slower(row.factor)], ["Changes", row.changes]];
    return {
      x: row.factor - 1,
      y: row.figures.needs_bytes,
      label: row.name,
      shape: SHAPES[how],
      color: COLORS[how],
      around: row.isSuggested ? "circle" : row.kind === "base" ? "square" : null,
      drops: false,
      name: row.name,
      facts: [...facts(fit, row.figures), ...time],
    };
  });
  const y = range([...points.map((point) => point.y), fit.head.device.memory_bytes]);
  const times = points.map((point) => point.x);
  const [least, most] = [Math.min(0, ...times), Math.max(0.02, ...times)];
  const [from, to] = [least - 0.06 * (most - least), most + 0.12 * (most - least)];
  const marks = rounded(from, to, 8, 0.01).map((mark) => [mark, slower(1 + mark)] as const);
  return { x: { from, to, marks, title: "step time against the job as it is (model)" }, y: { ...y, title: "memory needed" }, points, curves: [], limits: limits(fit, y) };
}

/** The part of an axis that shows some sizes, and its beginning unless they are far from it. */
function range(sizes: number[]): { from: number; to: number } {
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  const margin = Math.max(0.12 * (most - least), 0.02 * most);
  return { from: least - margin < 0.35 * most ? 0 : least - margin, to: most + margin };
}

function limits(fit: Fit, y: { from: number; to: number }): PlotLimit[] {
  const text = ({ name, memory_bytes: memory }: { name: string; memory_bytes: number }): string => `${name}: ${bytes(memory)}`;
  const apart = APART * (y.to - y.from);
  const others = fit.others(y.to - apart / 2, apart, MAX_DEVICES).filter((device) => device.memory_bytes > y.from + apart);
  const { device } = fit.head;
  return [...others.map((other) => ({ y: other.memory_bytes, text: text(other), isMain: false })), { y: device.memory_bytes, text: text(device), isMain: true }];
}

/** What is suggested: what it does, its code, and the command that runs it. */
function suggestion(fit: Fit): HTMLElement | null {
  const { suggestion: found, measures: all, device } = fit.head;
  if (!found) return null;
  const list = h("dl", { class: "facts" });
  for (const row of found.measures) {
    const { title, places, code } = all[row];
    list.append(h("dt", {}, `${title}${places ? ` (${places})` : ""}`), h("dd", {}, h("code", {}, code)));
  }
  list.append(h("dt", {}, "Run it"), h("dd", {}, h("code", { id: "run" }, found.run)));
  const ran = found.runs === null ? "" : found.runs ? `It ran with the memory of ${device.name}.` : `It did not run with the memory of ${device.name}.`;
  return h("section", { class: "card", id: "suggestion", aria: { label: "Suggestion" } }, h("header", {}, h("h2", {}, `Fits with ${fit.names(found.measures)}`), h("p", { class: "muted" }, ran)), list);
}

function byValue(fit: Fit, plot: HTMLElement): HTMLElement {
  const { values, law, option, device } = fit.head;
  const name = option?.name ?? "value";
  const isOne = values.length === 1;
  const rows = values.flatMap((of) => {
    const cells = of.points.map((point) => [point.value, row(of, point)] as const);
    const refused = of.refused.map(([value, reason]) => [value, [count(value), ...(isOne ? [] : [fit.names(of.measures)]), "–", "–", `could not be recorded: ${reason}`]] as const);
    return [...cells, ...refused].sort((a, b) => a[0] - b[0]).map(([, cells]) => cells);
  });
  function row(of: FitValues, point: FitFigures & { value: number }): (HTMLElement | string)[] {
    const isLargest = point.value === of.fits;
    const needs = h("span", { data: { value: point.value.toString(), bytes: point.needs_bytes.toString() } }, bytes(point.needs_bytes));
    const word = isLargest ? h("b", {}, count(point.value)) : count(point.value);
    return [word, ...(isOne ? [] : [fit.names(of.measures)]), needs, fits(point), isLargest ? `${fit.best}${of.proven ? "" : "; those between were not recorded"}` : ""];
  }
  const columns = [{ title: name, numeric: true }, ...(isOne ? [] : [{ title: "Measures" }]), { title: "Needs", numeric: true }, { title: "Fits" }, { title: "" }];
  const said = law === null ? "Between recorded values, lines are straight" : `The line between recorded values is a law of them, and its band as far as it may be off${law.off === null ? "" : ` (about recordings that were left out: ${law.off < 0.0001 ? "" : "up to "}${share(law.off)})`}`;
  return h(
    "section",
    { class: "card", id: "values", aria: { label: `Values of ${name}` } },
    h("header", {}, h("h2", {}, fit.head.option?.is_fewest ? "What each process needs" : `What each ${name} needs`), h("p", { class: "muted" }, `${said}. The figures are those of ${device.name}; on another device, the job may need a little more or less.`)),
    plot,
    curvesLegend(fit),
    table(`Recorded values of ${name}`, columns, rows),
    lawTable(fit, name),
  );
}

function curvesLegend(fit: Fit): HTMLElement {
  const curves = fit.head.values.map((values, at) => h("span", { class: `key curve-${Math.min(at, CURVES.length - 1)}` }, fit.names(values.measures)));
  const entry = (kind: string, text: string): HTMLElement => h("span", { class: `key ${kind}` }, text);
  return h("p", { class: "legend plain keys" }, ...curves, entry("plain-yes", "fits"), entry("plain-tight", "tight"), entry("plain-no", "does not fit"), entry("ringed", fit.best));
}

function share(value: number): string {
  if (value < 0.0001) return "less than 0.01 %";
  return value < 0.01 ? `${(100 * value).toFixed(2)} %` : `${(100 * value).toFixed(1)} %`;
}

/** The law as a table, of so many values in equal proportions as a reader may look at. */
function lawTable(fit: Fit, name: string): HTMLElement | null {
  const { law, device } = fit.head;
  if (law === null) return null;
  const every = Math.ceil(law.points.length / MAX_ROWS);
  const shown = law.points.filter((_, at) => at % every === 0 || at === law.points.length - 1);
  const rows = shown.map(([value, needs, low, high]) => [count(value), bytes(needs), low === high ? "" : `${bytes(low)} to ${bytes(high)}`, percent(needs, device.memory_bytes)]);
  const columns = [{ title: name, numeric: true }, { title: "Needs", numeric: true }, { title: "May be" }, { title: `Of ${device.name}`, numeric: true }];
  const some = shown.length < law.points.length ? `, ${shown.length} of ${plural(law.points.length, "value")}` : "";
  return h("details", { id: "law" }, h("summary", {}, "The line as a table"), table(`What each ${name} needs by the law${some}`, columns, rows));
}

function valuesOf(fit: Fit): PlotContent {
  const { values, law, option, device } = fit.head;
  const name = option?.name ?? "value";
  const curves: PlotCurve[] = [];
  const points: PlotPoint[] = [];
  values.forEach((of, at) => {
    const style = CURVES[Math.min(at, CURVES.length - 1)];
    const isLaw = law !== null && of.measures.length === 0;
    curves.push({
      points: isLaw ? law.points.map(([value, needs]) => [value, needs] as const) : of.points.map((point) => [point.value, point.needs_bytes] as const),
      band: isLaw ? law.points.map(([, , low, high]) => [low, high] as const) : null,
      ...style,
    });
    for (const point of of.points) {
      const isLargest = point.value === of.fits;
      points.push({
        x: point.value,
        y: point.needs_bytes,
        label: isLargest ? `${name} ${count(point.value)} ${fit.with(of)}` : "",
        shape: SHAPES[fits(point)],
        color: style.color,
        around: isLargest ? "circle" : null,
        drops: isLargest,
        name: `${name} ${count(point.value)} ${fit.with(of)}`,
        facts: [...facts(fit, point), ...(isLargest ? ([["", `the ${fit.best}`]] as [string, string][]) : [])],
      });
    }
  });
  points.sort((a, b) => Number(b.drops) - Number(a.drops));
  const highest = [...points.map((point) => point.y), ...(law?.points.map(([, , , high]) => high) ?? []), device.memory_bytes];
  const y = { from: 0, to: 1.08 * Math.max(...highest) };
  const all = curves.flatMap((curve) => curve.points.map(([value]) => value));
  const [least, most] = [Math.min(...all), Math.max(...all)];
  const from = least < 0.35 * most ? 0 : Math.max(0, least - 0.1 * (most - least) - 1);
  const to = most + 0.04 * (most - from) + (most === least ? 1 : 0);
  const marks = rounded(from, to, 10, 1).map((mark) => [mark, count(mark)] as const);
  return { x: { from, to, marks, title: name }, y: { ...y, title: "memory needed" }, points, curves, limits: limits(fit, y) };
}

function notes({ head }: Fit): HTMLElement {
  const list = h("ul", { class: "notes" });
  for (const note of head.notes) list.append(h("li", {}, note));
  return h("section", { aria: { label: "Notes" } }, list, h("p", { class: "muted" }, `${head.command}: ${plural(head.recordings, "recording")}`));
}
