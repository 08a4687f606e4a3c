// Where two runs part: the first request at which they ask for different memory.

import type { Run } from "./run";

export interface Divergence {
  /** Requests that are the same in both. */
  same: number;
  /** The rows of the blocks that differ; null where a run has no further one. */
  rows: [number | null, number | null];
}

/** The first allocation in which sizes differ, or operators that are known of both; null if there is none. Roles do not
 * count: those of a recording of a GPU are conclusions. */
export function divergence(one: Run, other: Run): Divergence | null {
  const texts = new Map(other.texts.map((text, at) => [text, at]));
  const translated = one.texts.map((text) => texts.get(text) ?? -1);
  const count = Math.min(one.blocks, other.blocks);
  for (let row = 0; row < count; row++) {
    const sameOp = one.op[row] === 0 || other.op[row] === 0 || translated[one.op[row]] === other.op[row];
    if (one.asked[row] !== other.asked[row] || !sameOp) return { same: row, rows: [row, row] };
  }
  if (one.blocks === other.blocks) return null;
  return { same: count, rows: [one.blocks > count ? count : null, other.blocks > count ? count : null] };
}

/** Bytes at the peak by a name of blocks. */
export function atPeak(run: Run, name: (row: number) => string): Map<string, number> {
  const sums = new Map<string, number>();
  for (const row of run.moments > 0 ? run.allocatedAt(run.peak) : []) {
    const key = name(row);
    sums.set(key, (sums.get(key) ?? 0) + run.size[row]);
  }
  return sums;
}
