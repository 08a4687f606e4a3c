// Allocator state: segments and the blocks in them at any moment, as a map of memory.

import type { App, View } from "../app";
import { memoryAt, memoryAtFailure, type Memory, type Piece, type Segment } from "../data/memory";
import { onFrame, Surface } from "../draw/canvas";
import { blockTable, facts, panel, roleLegend, title, when } from "../ui/block";
import { h, replace, table } from "../ui/dom";
import { bytes, count, percent, plural, request, words } from "../ui/format";
import { roleColor, variable } from "../ui/palette";
import { MomentChooser } from "../ui/moment";

const ROW = 22;
const GAP = 4;
/** The segments of the table. */
const MAX_ROWS = 60;
/** The pieces of a segment in the table. */
const MAX_PIECES = 200;
/** The recorded failures at one moment. */
const MAX_FAILURES = 8;

interface Box {
  x: number;
  y: number;
  width: number;
  segment: Segment;
  piece: Piece;
}

export function allocator(app: App): View {
  const surface = new Surface("Segments and blocks of the allocator. The tables below have them.");
  surface.canvas.className = "map";
  const tooltip = h("div", { class: "tooltip", hidden: true, role: "presentation" });
  const figures = h("dl", { class: "row" });
  const met = h("div");
  const legend = h("div");
  const chosen = h("div");
  const tables = h("div", { class: "columns" });
  const inside = h("div", { id: "pieces" });
  /** The address of the segment whose pieces are listed. */
  let listed: number | null = null;
  const place = h("div", { class: "mapped" }, surface.canvas, tooltip);
  const now = (): Memory => (app.atFailure && app.run.atFailure ? memoryAtFailure(app.run, app.run.atFailure) : memoryAt(app.run, app.moment));
  let memory: Memory = now();
  let boxes: Box[] = [];

  const paint = onFrame(() => {
    memory = now();
    boxes = drawMap(surface, app, memory);
    describe();
  });
  const moment = new MomentChooser(app, () => paint(), true);
  const root = h("div", { class: "allocator" }, moment.root, figures, met, legend, place, chosen, tables, inside);

  const describe = (): void => {
    const { run } = app;
    const unused = memory.reserved - memory.used;
    const figure = (term: string, text: string, value?: number): HTMLElement => {
      const data = value === undefined ? undefined : { figure: words(term).toLowerCase(), bytes: value.toString() };
      return h("div", {}, h("dt", {}, term), h("dd", { data }, text));
    };
    replace(
      figures,
      figure("Reserved", bytes(memory.reserved), memory.reserved),
      figure("In blocks", bytes(memory.used), memory.used),
      figure("Free", `${bytes(unused)} (${percent(unused, memory.reserved)})`),
      figure("Free pieces", count(memory.freePieces)),
      figure("Largest free piece", bytes(memory.largestFree), memory.largestFree),
      figure("Segments", count(memory.segments.length)),
      figure("Split segments", count(memory.segments.filter((segment) => segment.pieces.length > 1).length)),
    );
    replace(legend, roleLegend(run));
    replace(met, outOfMemory(app, memory), ...recordedFailures(app, memory));
    replace(chosen, app.block === null ? null : panel(app, app.block, () => choose(null)));
    const rows = [...memory.segments].sort((a, b) => b.size - b.used - (a.size - a.used) || b.size - a.size).slice(0, MAX_ROWS);
    const segments = rows.map((segment) => {
      const free = segment.pieces.filter((piece) => piece.row < 0);
      const list = (): void => {
        listed = segment.addr;
        listPieces();
        inside.querySelector<HTMLElement>(".scroll")?.focus();
      };
      return [
        h("button", { class: "link", on: { click: list } }, bytes(segment.size)),
        bytes(segment.size - segment.used),
        count(segment.pieces.length - free.length),
        bytes(Math.max(0, ...free.map((piece) => piece.size))),
        segment.kind,
        segment.stream.toString(),
        when(run, segment.start),
      ];
    });
    const columns = [
      { title: "Size", numeric: true },
      { title: "Free", numeric: true },
      { title: "Blocks", numeric: true },
      { title: "Largest free", numeric: true },
      { title: "Pool" },
      { title: "Stream" },
      { title: "Obtained in" },
    ];
    const more = memory.segments.length > MAX_ROWS ? `, the first ${MAX_ROWS} of ${memory.segments.length}` : "";
    replace(tables, table(`Segments, those with the most free memory first${more}`, columns, segments));
    listPieces();
  };
  const choose = (row: number | null): void => {
    app.block = row;
    paint();
  };
  /** The pieces that the segment was split into. */
  const listPieces = (): void => {
    const segment = memory.segments.find((segment) => segment.addr === listed);
    if (!segment) {
      replace(inside);
      return;
    }
    const { run } = app;
    const rows = segment.pieces.slice(0, MAX_PIECES).map(({ row, offset, size, waits }) => [
      bytes(offset),
      row < 0 ? bytes(size) : h("button", { class: "link", on: { click: () => choose(row) } }, bytes(size)),
      row < 0 ? "free" : waits ? "freed, waits for another stream" : words(run.roleName(row)),
      row < 0 ? "" : run.texts[run.op[row]] || "–",
      row < 0 ? "" : run.texts[run.line[row]] || "–",
      row < 0 ? "" : when(run, run.start[row]),
    ]);
    const columns = [{ title: "Offset", numeric: true }, { title: "Size", numeric: true }, { title: "Holds" }, { title: "Operator" }, { title: "Line" }, { title: "Allocated in" }];
    const caption = `${plural(segment.pieces.length, "piece")} of a segment of ${bytes(segment.size)}${segment.pieces.length > MAX_PIECES ? `, the first ${MAX_PIECES}` : ""}`;
    replace(inside, table(caption, columns, rows));
  };
  const under = (event: MouseEvent): Box | undefined => {
    const area = surface.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - area.left, event.clientY - area.top];
    return boxes.find((box) => x >= box.x && x < box.x + Math.max(2, box.width) && y >= box.y && y < box.y + ROW);
  };
  surface.canvas.addEventListener("pointermove", (event) => {
    const box = under(event);
    tooltip.hidden = !box;
    if (!box) return;
    const list = h("dl", { class: "facts" });
    const line = (term: string, text: string): void => list.append(h("dt", {}, term), h("dd", {}, text));
    if (box.piece.row >= 0) {
      for (const [term, text] of facts(app.run, box.piece.row)) if (term !== "Evidence") line(term, text);
      if (box.piece.waits) line("State", "freed, waits for another stream");
    }
    line("Segment", `${bytes(box.segment.size)}, ${box.segment.kind}, ${plural(box.segment.pieces.length, "piece")}`);
    line("Offset", bytes(box.piece.offset));
    replace(tooltip, h("b", {}, box.piece.row >= 0 ? title(app.run, box.piece.row) : `free: ${bytes(box.piece.size)}`), list);
    const area = place.getBoundingClientRect();
    const x = event.clientX - area.left;
    tooltip.style.left = `${x + 16 + tooltip.offsetWidth > area.width ? Math.max(0, x - tooltip.offsetWidth - 16) : x + 16}px`;
    tooltip.style.top = `${event.clientY - area.top + 14}px`;
  });
  surface.canvas.addEventListener("pointerleave", () => (tooltip.hidden = true));
  surface.canvas.addEventListener("click", (event) => {
    const box = under(event);
    choose(box && box.piece.row >= 0 ? box.piece.row : null);
  });
  return {
    root,
    draw: () => {
      moment.draw();
      paint();
    },
    key: (event) => moment.key(event),
  };

  /** What allocations that failed in the recorded job met. */
  function recordedFailures(of: App, memory: Memory): HTMLElement[] {
    const failed = of.run.failures.filter(({ after }) => after === of.moment).slice(0, MAX_FAILURES);
    return failed.map(({ bytes: requested, deviceFree }) => {
      const free = deviceFree === null ? "" : ` ${bytes(deviceFree)} were free on the device then.`;
      const fits = memory.largestFree >= requested ? "would hold it, as this map is that of the replay" : "does not hold it";
      return h(
        "section",
        { class: "panel bad", aria: { label: "Recorded out of memory" } },
        h("h3", {}, `Recorded out of memory: ${bytes(requested)} requested`),
        h("p", {}, `The recorded job asked for ${bytes(requested)} after this request, and did not get it.${free} The largest free piece of the map has ${bytes(memory.largestFree)}: it ${fits}. ${bytes(memory.reserved)} are reserved here, ${bytes(memory.used)} of it in blocks.`),
      );
    });
  }

  /** What the request met that the device cannot serve. */
  function outOfMemory(of: App, memory: Memory): HTMLElement | null {
    const oom = of.run.answer.out_of_memory;
    if (!oom || of.run.outOfMemory === null) return null;
    if (!of.atFailure) return h("p", { class: "muted" }, "The map is that of a device with space for all. Out of memory shows that of this device, at the request that it cannot serve.");
    const rows = memory.segments.flatMap((segment) => segment.pieces).filter((piece) => piece.row >= 0).map((piece) => piece.row);
    rows.sort((a, b) => of.run.size[b] - of.run.size[a] || a - b);
    return h(
      "section",
      { class: "panel bad", aria: { label: "Out of memory" } },
      h("h3", {}, `Out of memory: ${bytes(oom.requested_bytes)} requested`),
      h("p", {}, `Request ${request(of.run.outOfMemory)} cannot be served: the largest of ${plural(memory.freePieces, "free piece")} has ${bytes(memory.largestFree)}. The allocator released what it could and tried to obtain ${bytes(oom.tried_bytes)}, but ${bytes(oom.free_bytes)} were free on the device. ${bytes(oom.reserved_bytes)} were reserved then, ${bytes(oom.allocated_bytes)} of it allocated. The run ${of.run.answer.summary}.`),
      blockTable(of, "Largest blocks then", rows, (row) => choose(row), { most: 8 }),
    );
  }
}

/** Draws segments in rows, by address; a segment that is longer than a row goes on in the next. */
function drawMap(surface: Surface, app: App, memory: Memory): Box[] {
  const { canvas } = surface;
  const width = canvas.parentElement?.clientWidth ?? 0;
  const largest = Math.max(1, ...memory.segments.map((segment) => segment.size));
  const perRow = Math.max(largest / 8, memory.reserved / 26, 2 * 1024 * 1024);
  const scale = width / perRow;
  const boxes: Box[] = [];
  const frames: { x: number; y: number; width: number }[] = [];
  let x = 0;
  let y = 0;
  for (const segment of memory.segments) {
    const needed = Math.max(3, segment.size * scale);
    if (x > 0 && x + Math.min(needed, width) > width + 0.5) {
      x = 0;
      y += ROW + GAP;
    }
    // Pixels of this segment from its start, over rows of the full width.
    const first = x;
    const put = (from: number, to: number, add: (x: number, y: number, width: number) => void): void => {
      let at = first + from * scale;
      const end = Math.max(first + to * scale, at + (from === 0 && to === segment.size ? 3 : 0));
      while (at < end - 1e-6) {
        const row = Math.floor(at / width + 1e-9);
        const stop = Math.min(end, (row + 1) * width);
        add(at - row * width, y + row * (ROW + GAP), stop - at);
        at = stop;
      }
    };
    put(0, segment.size, (x, y, width) => frames.push({ x, y, width }));
    for (const piece of segment.pieces) {
      put(piece.offset, piece.offset + piece.size, (x, y, width) => boxes.push({ x, y, width, segment, piece }));
    }
    const end = first + needed;
    const rows = Math.floor(end / width + 1e-9);
    y += rows * (ROW + GAP);
    x = end - rows * width + GAP;
    if (x >= width) {
      x = 0;
      y += ROW + GAP;
    }
  }
  canvas.style.height = `${Math.max(ROW, y + ROW)}px`;
  if (!surface.fit()) return boxes;
  const context = surface.clear();
  context.fillStyle = variable("--free");
  for (const frame of frames) context.fillRect(frame.x, frame.y, frame.width, ROW);
  const roles = app.run.roles.map(roleColor);
  const surfaceColor = variable("--surface");
  for (const box of boxes) {
    if (box.piece.row < 0) continue;
    context.fillStyle = roles[app.run.role[box.piece.row]];
    context.globalAlpha = box.piece.waits ? 0.45 : 1;
    const inset = box.width > 3 ? 1 : 0;
    context.fillRect(box.x, box.y, Math.max(0.5, box.width - inset), ROW);
    context.globalAlpha = 1;
    if (box.piece.row === app.block) {
      context.fillStyle = surfaceColor;
      context.strokeStyle = variable("--chosen");
      context.lineWidth = 2;
      context.strokeRect(box.x + 1, box.y + 1, Math.max(1, box.width - 2), ROW - 2);
    }
  }
  context.strokeStyle = variable("--grid");
  context.lineWidth = 1;
  for (const frame of frames) context.strokeRect(frame.x + 0.5, frame.y + 0.5, Math.max(1, frame.width - 1), ROW - 1);
  return boxes;
}
