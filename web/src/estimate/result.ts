// What is shown of an answer.

import { Plot, rounded, type PlotContent, type PlotLimit, type PlotPoint, type Shape } from "../draw/plot";
import { figures, moment, notes, verdict } from "../ui/answer";
import { h, replace, table } from "../ui/dom";
import { bounds, bytes, count, percent, words } from "../ui/format";
import { roleColor } from "../ui/palette";
import type { Batches, BatchFigures } from "./batches";
import type { GraphAnswer } from "./messages";

const SHAPES: Record<string, Shape> = { fits: "circle", tight: "triangle" };
const COLORS: Record<string, string> = { fits: "--good", tight: "--warn", does_not_fit: "--bad" };

/** The card's memory is drawn into the curve of a run if the run takes at least this share of it. */
const NEAR = 0.4;

export class Result {
  readonly root = h("div", { class: "overview results", id: "results" });
  private readonly overTime = new Plot("Memory over the iterations of the job");
  private readonly byBatch = new Plot("Memory by batch size");
  private readonly batchCard: HTMLElement;
  private readonly largest = h("p", { class: "muted", id: "largest", role: "status" });
  private readonly failure = h("p", { class: "panel bad", id: "failure", role: "alert" });
  private answer: GraphAnswer | null = null;
  private batches: { all: Batches; chosen: number; running: boolean } | null = null;

  constructor() {
    this.batchCard = h(
      "section",
      { class: "card wide", id: "batches", aria: { label: "Memory by batch size" } },
      h("header", {}, h("h2", {}, "Memory by batch size"), this.largest),
      this.byBatch.root,
      h("p", { class: "legend plain keys" }, ...[["yes", "fits"], ["tight", "tight"], ["no", "does not fit"], ["square", "chosen"], ["ringed", "largest that fits"]].map(([kind, text]) => h("span", { class: `key ${kind}` }, text))),
    );
  }

  /** Shows an answer, and the command that prints the same. */
  show(answer: GraphAnswer, command: string): void {
    this.answer = answer;
    const { peak } = answer;
    replace(
      this.root,
      verdict(answer, peak.at ? moment(peak.at) : ""),
      figures(answer),
      roles(answer),
      h(
        "section",
        { class: "card", id: "over-time", aria: { label: "Memory over time" } },
        h("header", {}, h("h2", {}, "Memory over time")),
        this.overTime.root,
        h("p", { class: "legend plain keys" }, h("span", { class: "key curve-0" }, "allocated"), h("span", { class: "key curve-1" }, "reserved")),
      ),
      this.batchCard,
      assumed(answer, command),
      notes(answer),
    );
    this.draw();
  }

  /** Shows what batch sizes need; null where the graph leaves none open. */
  showBatches(all: Batches | null, chosen: number, running: boolean): void {
    this.batches = all && { all, chosen, running };
    this.draw();
  }

  /** Says why there is no answer. */
  fail(message: string): void {
    this.answer = null;
    this.failure.textContent = message;
    replace(this.root, this.failure);
  }

  draw(): void {
    const { answer, batches } = this;
    if (!answer) return;
    this.overTime.draw(timeOf(answer));
    this.batchCard.hidden = batches === null;
    if (!batches) return;
    const { all, chosen, running } = batches;
    const largest = all.largest();
    const searched = running ? "searching …" : "";
    this.largest.dataset.largest = largest?.toString() ?? "";
    this.largest.dataset.running = running.toString();
    this.largest.textContent = largest === null ? searched || "no size was found to fit" : all.isProven() ? `largest batch that fits: ${count(largest)}` : running ? `at least ${count(largest)} fits, ${searched}` : `fits up to ${count(largest)}, the largest size that was tried`;
    this.byBatch.draw(batchesOf(answer, all.all(), chosen, all.isProven() ? largest : null));
  }
}

/** What is alive at the peak. */
function roles(answer: GraphAnswer): HTMLElement {
  const whole = answer.peak.allocated_bytes;
  const shares = Object.entries(answer.by_role).filter(([, share]) => share > 0);
  shares.sort((a, b) => b[1] - a[1]);
  const bar = h("div", { class: "shares", aria: { hidden: "true" } });
  for (const [role, share] of shares) {
    const part = h("i", { title: `${words(role)}: ${bytes(share)}` });
    part.style.width = `${(100 * share) / Math.max(whole, 1)}%`;
    part.style.backgroundColor = roleColor(role);
    bar.append(part);
  }
  const rows = shares.map(([role, share]) => {
    const mark = h("i", { class: "swatch", aria: { hidden: "true" } });
    mark.style.backgroundColor = roleColor(role);
    return [h("span", { data: { role, bytes: share.toString() } }, mark, words(role)), bytes(share), percent(share, whole)];
  });
  const columns = [{ title: "Role" }, { title: "Bytes", numeric: true }, { title: "Share", numeric: true }];
  return h(
    "section",
    { class: "card", id: "roles", aria: { label: "Memory at the peak" } },
    h("header", {}, h("h2", {}, "Memory at the peak"), h("p", { class: "muted" }, `${bytes(whole)} allocated`)),
    bar,
    table("Memory at the peak by role", columns, rows),
  );
}

function timeOf({ curve, device }: GraphAnswer): PlotContent {
  const of = (values: number[]): [number, number][] => values.map((value, at) => [at, value]);
  const highest = Math.max(1, ...curve.reserved_bytes);
  const limit: PlotLimit = { y: device.available_bytes, text: `for PyTorch on ${device.name}: ${bytes(device.available_bytes)}`, isMain: true };
  const isNear = highest > NEAR * device.available_bytes;
  const to = 1.1 * Math.max(highest, isNear ? device.available_bytes : 0);
  return {
    x: { from: 0, to: Math.max(1, curve.allocated_bytes.length - 1), title: "requests, in order", marks: curve.iteration_starts.map(({ iteration, point }) => [point, `iteration ${iteration}`]) },
    y: { from: 0, to, title: "memory" },
    points: [],
    curves: [
      { points: of(curve.reserved_bytes), band: null, color: "--second", dash: [6, 4] },
      { points: of(curve.allocated_bytes), band: null, color: "--accent", dash: [] },
    ],
    limits: isNear ? [limit] : [],
  };
}

function batchesOf({ device }: GraphAnswer, all: BatchFigures[], chosen: number, largest: number | null): PlotContent {
  const memory = device.memory_bytes;
  // Sizes far beyond the memory would press the rest flat.
  const shown = all.filter(({ batch, device_bytes: needed }) => needed <= 2.2 * memory || batch === chosen);
  const points = shown.map((one): PlotPoint => {
    const name = `batch ${count(one.batch)}`;
    const isLargest = one.batch === largest;
    return {
      x: one.batch,
      y: one.device_bytes,
      label: isLargest ? name : "",
      shape: SHAPES[one.decision] ?? "ring",
      color: COLORS[one.decision] ?? "--muted",
      around: one.batch === chosen ? "square" : isLargest ? "circle" : null,
      drops: isLargest,
      name,
      facts: [
        ["In nvidia-smi", bytes(one.device_bytes)],
        ["May be", bounds(one.device_bytes, one.range.low, one.range.high)],
        ["Verdict", words(one.decision)],
      ],
    };
  });
  const weight = (point: PlotPoint): number => (point.around === "circle" ? 2 : point.around ? 1 : 0);
  points.sort((a, b) => weight(b) - weight(a));
  const to = 1.06 * Math.max(memory, ...shown.map((one) => one.range.high));
  const most = 1.06 * Math.max(2, ...shown.map((one) => one.batch));
  const curve = {
    points: shown.map((one) => [one.batch, one.device_bytes] as const),
    band: shown.map((one) => [one.range.low, one.range.high] as const),
    color: "--accent",
    dash: [],
  };
  return {
    x: { from: 0, to: most, title: "batch size", marks: rounded(0, most, 8, 1).map((mark) => [mark, count(mark)]) },
    y: { from: 0, to, title: "in nvidia-smi" },
    points,
    curves: [curve],
    limits: [{ y: memory, text: `${device.name}: ${bytes(memory)}`, isMain: true }],
  };
}

/** What the answer rests on. */
function assumed(answer: GraphAnswer, command: string): HTMLElement {
  const { target, range } = answer;
  const list = h("dl", { class: "facts" });
  const rows: [string, string | HTMLElement][] = [
    ["Confidence", words(range.confidence)],
    ["PyTorch", `${target.torch}, ${target.allocator.name} allocator`],
    ["Convolutions", target.convolutions],
    ["Not certain", range.uncertainties.map(({ name }) => words(name)).join(", ") || "nothing"],
    ["Iterations", `${answer.iterations.to - answer.iterations.from} were followed`],
    ["Command line", h("code", { id: "command" }, command)],
  ];
  for (const [term, text] of rows) list.append(h("dt", {}, term), h("dd", {}, text));
  const why = "The loop around the model is assumed: a value of the graph dies after its last use, and what a script does between two batches is not in a graph.";
  return h("section", { class: "card wide", id: "assumed", aria: { label: "Confidence and assumptions" } }, h("h2", {}, "Confidence and assumptions"), list, h("p", { class: "muted" }, why));
}
