// A plot of memory against a number: curves with bands, lines for the memory of devices, and points, each of which is a
// button that says what it stands for.

import { h, replace } from "../ui/dom";
import { tick } from "../ui/format";
import { variable } from "../ui/palette";
import { Surface } from "./canvas";

/** The place of the axes. */
const [LEFT, RIGHT, TOP, BOTTOM] = [62, 14, 22, 40];

/** Points that are closer, in pixels, are one. */
const NEAR = 7;

/** The height of a text. */
const LINE = 14;

/** A filled circle, a triangle, a ring. */
export type Shape = "circle" | "triangle" | "ring";

export interface PlotPoint {
  x: number;
  y: number;
  /** The text beside it, if there is room; empty for none. */
  label: string;
  shape: Shape;
  /** A variable of the style sheet. */
  color: string;
  /** A square or a circle around it: what other points are compared with, or what to look at first. */
  around: "square" | "circle" | null;
  /** A line down to the axis. */
  drops: boolean;
  name: string;
  facts: readonly (readonly [string, string])[];
}

export interface PlotCurve {
  points: (readonly [x: number, y: number])[];
  /** The bounds of `y` at each point. */
  band: (readonly [low: number, high: number])[] | null;
  color: string;
  dash: number[];
}

export interface PlotLimit {
  y: number;
  text: string;
  /** Of the device that the plot is about. */
  isMain: boolean;
}

export interface Axis {
  from: number;
  to: number;
  title: string;
}

export interface PlotContent {
  x: Axis & { marks: (readonly [number, string])[] };
  y: Axis;
  /** Those that matter most first: they get their labels. */
  points: PlotPoint[];
  curves: PlotCurve[];
  limits: PlotLimit[];
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

const overlap = (a: Box, b: Box): boolean => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

/** Round numbers from one to another, `count` at most and one more. */
export function rounded(from: number, to: number, count: number, least = 0): number[] {
  const rough = Math.max(least, (to - from) / count, Number.MIN_VALUE);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9)) ?? 10);
  return multiples(from, to, step);
}

function multiples(from: number, to: number, step: number): number[] {
  const marks = [];
  for (let at = Math.ceil(from / step - 1e-9); at * step <= to * (1 + 1e-9); at++) marks.push(at * step);
  return marks;
}

export class Plot {
  readonly root: HTMLElement;
  private readonly surface: Surface;
  private readonly points: HTMLElement;
  private readonly tooltip = h("div", { class: "tooltip", hidden: true, role: "presentation" });
  private buttons: HTMLButtonElement[] = [];

  constructor(label: string) {
    this.surface = new Surface(`${label}. The table below has the figures.`);
    this.points = h("div", { class: "points", role: "group", aria: { label: `${label}: points. Arrow keys go from one to the next.` } });
    this.root = h("div", { class: "plotted" }, this.surface.canvas, this.points, this.tooltip);
    this.points.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.tooltip.hidden = true;
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const at = this.buttons.findIndex((button) => button === document.activeElement);
      const next = this.buttons[at + (by ?? 0)];
      if (at < 0 || !by || !next) return;
      event.preventDefault();
      this.buttons[at].tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
  }

  draw(content: PlotContent): void {
    const { surface } = this;
    const focused = this.buttons.findIndex((button) => button === document.activeElement);
    this.tooltip.hidden = true;
    this.buttons = [];
    if (!surface.fit()) {
      replace(this.points);
      return;
    }
    const context = surface.clear();
    const { x, y } = content;
    const [right, bottom] = [surface.width - RIGHT, surface.height - BOTTOM];
    const place = (value: number, axis: Axis, from: number, to: number): number => from + ((value - axis.from) / Math.max(axis.to - axis.from, 1e-12)) * (to - from);
    const px = (value: number): number => place(value, x, LEFT, right);
    const py = (value: number): number => place(value, y, bottom, TOP);
    context.font = `11px ${variable("--sans")}`;
    context.textBaseline = "middle";
    axes(context, content, px, py, right, bottom);
    const lines: Box[] = content.limits.map((limit) => ({ x: LEFT, y: py(limit.y) - 1, width: right - LEFT, height: 2 }));
    for (const curve of content.curves) {
      drawCurve(context, curve, px, py);
      lines.push(...along(curve.points.map(([x, y]) => [px(x), py(y)])));
    }
    const taken = content.limits.map((limit) => drawLimit(context, limit, py(limit.y), right));
    const clusters = clustered(content.points.map((point) => ({ x: px(point.x), y: py(point.y), points: [point] })));
    for (const { x, y } of clusters) taken.push({ x: x - 7, y: y - 7, width: 14, height: 14 });
    // What matters most is above the rest.
    for (const { x, y, points } of [...clusters].reverse()) drawPoint(context, points[0], x, y, bottom);
    for (const cluster of clusters) label(context, cluster, taken, lines, { x: LEFT, y: TOP, width: right - LEFT, height: bottom - TOP });
    clusters.sort((a, b) => a.x - b.x || b.y - a.y);
    this.buttons = clusters.map((cluster) => this.button(cluster));
    const first = this.buttons[Math.max(0, focused)];
    if (first) first.tabIndex = 0;
    replace(this.points, ...this.buttons);
    if (focused >= 0) this.buttons[focused]?.focus();
  }

  private button({ x, y, points }: Cluster): HTMLButtonElement {
    const said = points.map((point) => [point.name, ...point.facts.map(([term, text]) => `${term}: ${text}`)].join(", "));
    const button = h("button", { class: "point", tabindex: -1, aria: { label: said.join("; ") }, data: { points: points.map((point) => point.name).join("; ") } });
    button.style.left = `${x}px`;
    button.style.top = `${y}px`;
    const show = (): void => {
      replace(this.tooltip, ...points.flatMap((point) => [h("b", {}, point.name), facts(point)]));
      this.tooltip.hidden = false;
      const [width, height] = [this.tooltip.offsetWidth, this.tooltip.offsetHeight];
      this.tooltip.style.left = `${x + 14 + width > this.surface.width ? Math.max(0, x - width - 14) : x + 14}px`;
      this.tooltip.style.top = `${Math.max(0, Math.min(y + 10, this.surface.height - height))}px`;
    };
    const hide = (): void => {
      this.tooltip.hidden = true;
    };
    for (const event of ["pointerenter", "focus"] as const) button.addEventListener(event, show);
    for (const event of ["pointerleave", "blur"] as const) button.addEventListener(event, hide);
    return button;
  }
}

function facts(point: PlotPoint): HTMLElement {
  const list = h("dl", { class: "facts" });
  for (const [term, text] of point.facts) list.append(h("dt", {}, term), h("dd", {}, text));
  return list;
}

/** Points that are one on the screen, those that matter most first. */
interface Cluster {
  x: number;
  y: number;
  points: PlotPoint[];
}

function clustered(all: Cluster[]): Cluster[] {
  const clusters: Cluster[] = [];
  for (const one of all) {
    const near = clusters.find((other) => Math.abs(other.x - one.x) < NEAR && Math.abs(other.y - one.y) < NEAR);
    if (near) near.points.push(...one.points);
    else clusters.push(one);
  }
  return clusters;
}

function axes(context: CanvasRenderingContext2D, { x, y }: PlotContent, px: (value: number) => number, py: (value: number) => number, right: number, bottom: number): void {
  context.lineWidth = 1;
  context.strokeStyle = variable("--line");
  context.fillStyle = variable("--muted");
  const line = (fromX: number, fromY: number, toX: number, toY: number): void => {
    context.beginPath();
    context.moveTo(Math.round(fromX) + 0.5, Math.round(fromY) + 0.5);
    context.lineTo(Math.round(toX) + 0.5, Math.round(toY) + 0.5);
    context.stroke();
  };
  context.textAlign = "right";
  const step = 2 ** Math.ceil(Math.log2(Math.max(1, (y.to - y.from) / 6)));
  for (const mark of multiples(y.from, y.to, step)) {
    line(LEFT, py(mark), right, py(mark));
    context.fillText(tick(mark), LEFT - 7, py(mark));
  }
  context.textAlign = "center";
  for (const [mark, text] of x.marks) {
    line(px(mark), bottom, px(mark), bottom + 4);
    const half = context.measureText(text).width / 2;
    context.fillText(text, Math.min(px(mark), right + RIGHT - half), bottom + 13);
  }
  context.fillText(x.title, (LEFT + right) / 2, bottom + 31);
  context.textAlign = "left";
  context.fillText(y.title, 2, 8);
  context.strokeStyle = variable("--grid");
  line(LEFT, bottom, right, bottom);
}

function drawCurve(context: CanvasRenderingContext2D, { points, band, color, dash }: PlotCurve, px: (value: number) => number, py: (value: number) => number): void {
  if (points.length === 0) return;
  const hue = variable(color);
  if (band) {
    context.beginPath();
    points.forEach(([x], at) => context.lineTo(px(x), py(band[at][1])));
    for (let at = points.length - 1; at >= 0; at--) context.lineTo(px(points[at][0]), py(band[at][0]));
    context.closePath();
    context.globalAlpha = 0.22;
    context.fillStyle = hue;
    context.fill();
    context.globalAlpha = 1;
  }
  context.beginPath();
  for (const [x, y] of points) context.lineTo(px(x), py(y));
  context.lineWidth = 1.5;
  context.strokeStyle = hue;
  context.setLineDash(dash);
  context.stroke();
  context.setLineDash([]);
}

/** Draws the line of a device; returns the place of its text. */
function drawLimit(context: CanvasRenderingContext2D, { text, isMain }: PlotLimit, y: number, right: number): Box {
  context.strokeStyle = variable(isMain ? "--ink" : "--muted");
  context.lineWidth = isMain ? 1.5 : 1;
  context.setLineDash(isMain ? [] : [2, 4]);
  context.beginPath();
  context.moveTo(LEFT, Math.round(y) + 0.5);
  context.lineTo(right, Math.round(y) + 0.5);
  context.stroke();
  context.setLineDash([]);
  context.textAlign = "left";
  written(context, text, LEFT + 6, y - 8, isMain ? "--ink" : "--muted");
  return { x: LEFT + 6, y: y - 8 - LINE / 2, width: context.measureText(text).width, height: LINE + 2 };
}

/** Writes on what is drawn already. */
function written(context: CanvasRenderingContext2D, text: string, x: number, y: number, color: string): void {
  context.strokeStyle = variable("--surface");
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.strokeText(text, x, y);
  context.fillStyle = variable(color);
  context.fillText(text, x, y);
}

function drawPoint(context: CanvasRenderingContext2D, { shape, color, around, drops }: PlotPoint, x: number, y: number, bottom: number): void {
  const hue = variable(color);
  context.strokeStyle = hue;
  if (drops) {
    context.lineWidth = 1;
    context.setLineDash([3, 3]);
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x, bottom);
    context.stroke();
    context.setLineDash([]);
  }
  context.beginPath();
  if (shape === "triangle") {
    context.moveTo(x, y - 5.5);
    context.lineTo(x + 5.5, y + 4.5);
    context.lineTo(x - 5.5, y + 4.5);
    context.closePath();
  } else {
    context.arc(x, y, 4.5, 0, 2 * Math.PI);
  }
  context.lineWidth = 2;
  context.fillStyle = shape === "ring" ? variable("--surface") : hue;
  context.fill();
  context.stroke();
  if (!around) return;
  context.strokeStyle = variable("--ink");
  context.lineWidth = 1.5;
  context.beginPath();
  if (around === "square") context.rect(x - 9, y - 9, 18, 18);
  else context.arc(x, y, 10, 0, 2 * Math.PI);
  context.stroke();
}

/** Small boxes along a line. */
function along(points: [number, number][]): Box[] {
  const boxes: Box[] = [];
  points.slice(1).forEach(([x, y], at) => {
    const [fromX, fromY] = points[at];
    const steps = Math.max(1, Math.ceil(Math.hypot(x - fromX, y - fromY) / 5));
    for (let step = 0; step <= steps; step++) boxes.push({ x: fromX + ((x - fromX) * step) / steps - 1, y: fromY + ((y - fromY) * step) / steps - 1, width: 2, height: 2 });
  });
  return boxes;
}

/** Writes the name of a point where no other text and no point is: right of it, left, above or below, beside lines if there is
 * room. */
function label(context: CanvasRenderingContext2D, { x, y, points }: Cluster, taken: Box[], lines: Box[], within: Box): void {
  const named = points.filter((point) => point.label !== "");
  if (named.length === 0) return;
  const text = named.length === 1 ? named[0].label : `${named[0].label} and ${named.length - 1} more`;
  const width = context.measureText(text).width;
  const places = [
    [x + 13, y],
    [x - 13 - width, y],
    [x - width / 2, y - 18],
    [x - width / 2, y + 18],
    [x + 11, y - 13],
    [x + 11, y + 13],
    [x - 11 - width, y - 13],
    [x - 11 - width, y + 13],
  ];
  const boxes = places.map(([left, middle]) => ({ x: left, y: middle - LINE / 2, width, height: LINE }));
  const isInside = (box: Box): boolean => box.x >= within.x && box.x + width <= within.x + within.width && box.y >= within.y && box.y + LINE <= within.y + within.height;
  const free = boxes.filter((box) => isInside(box) && !taken.some((other) => overlap(box, other)));
  const box = free.find((box) => !lines.some((line) => overlap(box, line))) ?? free[0];
  if (!box) return;
  taken.push(box);
  context.textAlign = "left";
  written(context, text, box.x, box.y + LINE / 2, "--ink");
}
