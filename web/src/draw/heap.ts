// Heap maps: which block lies where, over time. Time from left to right, addresses from the bottom up.

import { h, replace } from "../ui/dom";
import { bytes, tick, ticks, words } from "../ui/format";
import { roleColor, variable } from "../ui/palette";
import { Surface } from "./canvas";

/** Blocks with lifetimes and places. */
export interface HeapBlocks {
  /** The ends of the axis of time, in the unit of `start`. */
  from: number;
  to: number;
  roles: string[];
  start: ArrayLike<number>;
  end: ArrayLike<number>;
  size: ArrayLike<number>;
  role: ArrayLike<number>;
  /** -1 for a block that is not placed. */
  offset: ArrayLike<number>;
  /** Memory that the allocator has obtained. */
  segments: { base: ArrayLike<number>; size: ArrayLike<number>; start: ArrayLike<number>; end: ArrayLike<number> } | null;
  /** What there is to say about a block beside its size, role and place. */
  describe(row: number): [string, string][];
}

export class HeapMap {
  readonly root: HTMLElement;
  private readonly surface: Surface;
  private readonly tooltip = h("div", { class: "tooltip", hidden: true, role: "presentation" });
  private under: (x: number, y: number) => number = () => -1;
  private describe: (row: number) => HTMLElement = () => h("dl");

  constructor(label: string) {
    this.surface = new Surface(`${label}. The table below has the largest blocks.`);
    this.surface.canvas.className = "heap";
    this.root = h("div", { class: "mapped" }, this.surface.canvas, this.tooltip);
    this.surface.canvas.addEventListener("pointermove", (event) => {
      const box = this.surface.canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      const row = this.under(x, y);
      this.tooltip.hidden = row < 0;
      if (row < 0) return;
      replace(this.tooltip, this.describe(row));
      this.tooltip.style.left = `${x + 16 + this.tooltip.offsetWidth > box.width ? Math.max(0, x - this.tooltip.offsetWidth - 16) : x + 16}px`;
      this.tooltip.style.top = `${y + 14}px`;
    });
    this.surface.canvas.addEventListener("pointerleave", () => (this.tooltip.hidden = true));
  }

  /** Draws the blocks below `most` bytes. */
  draw(blocks: HeapBlocks, most: number): void {
    const { surface } = this;
    if (!surface.fit()) return;
    const context = surface.clear();
    const { start, end, size, role, offset, segments } = blocks;
    const count = start.length;
    const span = Math.max(1, blocks.to - blocks.from);
    const x = (tick: number): number => ((tick - blocks.from) / span) * surface.width;
    const y = (address: number): number => surface.height - (address / most) * surface.height;
    context.font = `11px ${variable("--sans")}`;
    context.fillStyle = variable("--free");
    for (let row = 0; segments && row < segments.size.length; row++) {
      const top = y(segments.base[row] + segments.size[row]);
      const left = x(segments.start[row]);
      context.fillRect(left, top, x(segments.end[row]) - left, y(segments.base[row]) - top);
    }
    const colors = blocks.roles.map(roleColor);
    const edge = variable("--surface");
    for (let row = 0; row < count; row++) {
      if (offset[row] < 0) continue;
      const [left, top] = [x(start[row]), y(offset[row] + size[row])];
      const [width, height] = [x(end[row]) - left, y(offset[row]) - top];
      context.fillStyle = colors[role[row]];
      context.fillRect(left, top, Math.max(0.5, width), Math.max(0.5, height));
      if (width > 4 && height > 4) {
        context.strokeStyle = edge;
        context.lineWidth = 0.5;
        context.strokeRect(left, top, width, height);
      }
    }
    for (const mark of ticks(most, 5)) {
      if (mark === 0) continue;
      const text = tick(mark);
      context.fillStyle = edge;
      context.fillRect(0, y(mark), context.measureText(text).width + 6, 14);
      context.fillStyle = variable("--ink");
      context.fillText(text, 3, y(mark) + 11);
    }
    this.under = (pointX, pointY) => {
      const at = blocks.from + (pointX / surface.width) * span;
      const address = ((surface.height - pointY) / surface.height) * most;
      for (let row = 0; row < count; row++) {
        if (offset[row] >= 0 && start[row] <= at && at < end[row] && offset[row] <= address && address < offset[row] + size[row]) return row;
      }
      return -1;
    };
    this.describe = (row) => {
      const list = h("dl", { class: "facts" });
      const line = (term: string, text: string): void => list.append(h("dt", {}, term), h("dd", {}, text));
      line("Block", `${bytes(size[row])} ${words(blocks.roles[role[row]])}`);
      for (const [term, text] of blocks.describe(row)) if (text) line(term, text);
      line("Offset", bytes(offset[row]));
      return list;
    };
  }
}
