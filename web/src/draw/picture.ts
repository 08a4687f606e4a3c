// Stacked memory as pixels: for each column of the screen the moment with the highest allocated bytes in it, groups
// from the bottom up, and in each group its large blocks in the order of allocation above the small ones. A second
// picture of the same size says which block each pixel shows.

import type { Groups } from "../data/groups";
import type { Run } from "../data/run";
import type { Maxima, Stack } from "../data/stack";
import { rgb } from "../ui/palette";

/** Blocks below this height, in pixels, are drawn as one. */
const SMALLEST = 1.5;
/** Blocks above this height have an edge. */
const EDGED = 5;

export interface Window {
  /** First moment. */
  from: number;
  /** The moment after the last. May be fractional, as `from`. */
  to: number;
}

export class Picture {
  private image: ImageData;
  private pixels: Uint32Array;
  /** Row of the block + 1, or -(group + 1), or 0. */
  private shown: Int32Array;
  /** The top of the picture, in bytes. */
  private most = 1;
  /** Smaller blocks are drawn as one. */
  private smallest = 0;
  /** The moment of each column. */
  readonly columns: Uint32Array;

  constructor(
    readonly width: number,
    readonly height: number,
  ) {
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.shown = new Int32Array(width * height);
    this.columns = new Uint32Array(width);
  }

  /** The row of the block at a pixel, also where it is too small to be drawn alone; none above the stack. */
  blockAt(x: number, y: number, run: Run, stack: Stack, groups: Groups): number | null {
    if (x < 0 || y < 0 || x >= this.width || y >= this.height) return null;
    const shown = this.shown[y * this.width + x];
    if (shown >= 0) return shown === 0 ? null : shown - 1;
    const group = -shown - 1;
    const moment = this.columns[x];
    // Small blocks lie at the bottom of their group, in the order of allocation.
    const now = stack.at(moment);
    let offset = ((this.height - y - 0.5) / this.height) * this.most;
    for (let below = 0; below < group; below++) offset -= now[below];
    let last: number | null = null;
    for (let row = 0; row < run.blocks && run.start[row] <= moment; row++) {
      if (run.freed[row] <= moment || groups.of[row] !== group || run.size[row] >= this.smallest) continue;
      last = row;
      offset -= run.size[row];
      if (offset < 0) break;
    }
    return last;
  }

  draw(
    context: CanvasRenderingContext2D,
    run: Run,
    stack: Stack,
    groups: Groups,
    maxima: Maxima,
    window: Window,
    most: number,
    shades: Shades,
    selected: number,
  ): void {
    this.most = most;
    this.smallest = (most / this.height) * SMALLEST;
    this.choose(run, maxima, window);
    this.pixels.fill(0);
    this.shown.fill(0);
    const large = new Large(run, groups, stack.groups, this.smallest, window);
    const scale = this.height / most;
    const { width, height, pixels, shown, columns } = this;
    const fill = (x: number, from: number, to: number, id: number, shade: number, edge: number): void => {
      const bottom = Math.min(height, Math.round(height - from * scale));
      const top = Math.max(0, Math.round(height - to * scale));
      let at = top * width + x;
      for (let y = top; y < bottom; y++, at += width) {
        pixels[at] = shade;
        shown[at] = id;
      }
      if (bottom - top >= EDGED) pixels[top * width + x] = edge;
    };
    for (let x = 0; x < width; x++) {
      const moment = columns[x];
      const now = stack.at(moment);
      large.advance(moment);
      let offset = 0;
      for (let group = 0; group < stack.groups; group++) {
        if (now[group] <= 0) continue;
        const rows = large.alive[group];
        const small = now[group] - large.bytes[group];
        if (small > 0) {
          fill(x, offset, offset + small, -(group + 1), shades.of(group, 0), shades.of(group, 0));
          offset += small;
        }
        for (let at = 0; at < large.count[group]; at++) {
          const row = rows[at];
          const end = offset + run.size[row];
          const shade = row === selected ? shades.selected : shades.of(group, row);
          fill(x, offset, end, row + 1, shade, shades.edge(group));
          offset = end;
        }
      }
    }
    context.putImageData(this.image, 0, 0);
  }

  private choose(run: Run, maxima: Maxima, window: Window): void {
    const scale = (window.to - window.from) / this.width;
    const last = run.moments - 1;
    for (let x = 0; x < this.width; x++) {
      const from = Math.min(last, Math.floor(window.from + x * scale));
      const to = Math.min(last + 1, Math.floor(window.from + (x + 1) * scale));
      this.columns[x] = to > from + 1 ? maxima.at(from, to) : from;
    }
  }
}

/** The large blocks of a window, alive at one moment after the other. */
class Large {
  readonly alive: Uint32Array[];
  readonly count: Uint32Array;
  readonly bytes: Float64Array;
  private readonly rows: Uint32Array;
  private next = 0;
  private readonly run: Run;
  private readonly groups: Groups;

  constructor(run: Run, groups: Groups, groupCount: number, smallest: number, window: Window) {
    this.run = run;
    this.groups = groups;
    const rows: number[] = [];
    const { start, freed, size } = run;
    const from = Math.floor(window.from);
    for (let row = 0; row < run.blocks && start[row] < window.to; row++) {
      if (size[row] >= smallest && freed[row] > from) rows.push(row);
    }
    this.rows = Uint32Array.from(rows);
    this.alive = Array.from({ length: groupCount }, () => new Uint32Array(64));
    this.count = new Uint32Array(groupCount);
    this.bytes = new Float64Array(groupCount);
  }

  advance(moment: number): void {
    const { run, alive, count, bytes } = this;
    for (let group = 0; group < alive.length; group++) {
      const rows = alive[group];
      let kept = 0;
      for (let at = 0; at < count[group]; at++) {
        const row = rows[at];
        if (run.freed[row] > moment) rows[kept++] = row;
        else bytes[group] -= run.size[row];
      }
      count[group] = kept;
    }
    for (; this.next < this.rows.length && run.start[this.rows[this.next]] <= moment; this.next++) {
      const row = this.rows[this.next];
      if (run.freed[row] <= moment) continue;
      const group = this.groups.of[row];
      if (count[group] === alive[group].length) {
        const longer = new Uint32Array(2 * alive[group].length);
        longer.set(alive[group]);
        alive[group] = longer;
      }
      alive[group][count[group]++] = row;
      bytes[group] += run.size[row];
    }
  }
}

/** Colors of groups as pixels: four shades each, so that neighbors differ. */
export class Shades {
  private readonly table: Uint32Array;
  private readonly edges: Uint32Array;
  readonly selected: number;

  constructor(colors: string[], surface: string, selected: string) {
    this.table = new Uint32Array(colors.length * 4);
    this.edges = new Uint32Array(colors.length);
    const paper = rgb(surface);
    colors.forEach((color, group) => {
      const hue = rgb(color);
      for (let shade = 0; shade < 4; shade++) this.table[group * 4 + shade] = mixed(hue, paper, shade * 0.07);
      this.edges[group] = mixed(hue, paper, 0.5);
    });
    this.selected = mixed(rgb(selected), paper, 0);
  }

  of(group: number, row: number): number {
    return this.table[group * 4 + ((Math.imul(row, 0x9e3779b1) >>> 29) & 3)];
  }

  edge(group: number): number {
    return this.edges[group];
  }
}

/** A pixel as the little-endian word of an image's data. */
function mixed(color: number[], paper: number[], share: number): number {
  const [r, g, b] = color.map((value, at) => Math.round(value + (paper[at] - value) * share));
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}
