// Memory by batch size: which sizes are asked about, so that the curve shows the largest one that fits.

import type { Bounds } from "../data/page";
import type { GraphAnswer } from "./messages";

/** Larger batches are not asked about. */
const MOST = 1 << 16;

/** What one batch size needs. */
export interface BatchFigures {
  batch: number;
  /** Whether the run is expected to end; it may be tight. */
  fits: boolean;
  decision: string;
  device_bytes: number;
  range: Bounds;
}

export function figuresOf(batch: number, answer: GraphAnswer): BatchFigures {
  return { batch, fits: answer.verdict === "fits", decision: answer.decision, device_bytes: answer.peak.device_bytes, range: answer.range.device_bytes };
}

/** The sizes that were asked about under one setting. */
export class Batches {
  private readonly known = new Map<number, BatchFigures | null>();

  /** Notes what a size needs; null if it cannot be estimated. */
  add(batch: number, figures: BatchFigures | null): void {
    this.known.set(batch, figures);
  }

  /** All figures, in the order of sizes. */
  all(): BatchFigures[] {
    const all = [...this.known.values()].filter((figures) => figures !== null);
    return all.sort((a, b) => a.batch - b.batch);
  }

  /** The largest size that fits, if one is known. */
  largest(): number | null {
    const fitting = [...this.known.keys()].filter((batch) => this.fits(batch));
    return fitting.length > 0 ? Math.max(...fitting) : null;
  }

  /** Whether the next larger size is known not to fit. */
  isProven(): boolean {
    const largest = this.largest();
    return largest !== null && this.known.has(largest + 1) && !this.fits(largest + 1);
  }

  /** The size to ask about next: twice the largest that fits, until one does not; then halves between the two. */
  next(): number | null {
    if (!this.known.has(1)) return 1;
    const low = this.largest();
    if (low === null) return null;
    const above = [...this.known.keys()].filter((batch) => batch > low);
    if (above.length === 0) return low >= MOST ? null : Math.min(MOST, 2 * low);
    const high = Math.min(...above);
    return high - low > 1 ? low + ((high - low) >> 1) : null;
  }

  private fits(batch: number): boolean {
    return this.known.get(batch)?.fits ?? false;
  }
}
