// Allocated bytes by group at any moment: kept every 256 moments, and counted on from there.

import type { Run } from "./run";

const STEP = 256;

/** Maxima of a figure over any span of moments. */
export class Maxima {
  private readonly best: Uint32Array;

  constructor(private readonly values: Float64Array) {
    const count = Math.ceil(values.length / STEP);
    this.best = new Uint32Array(count);
    for (let part = 0; part < count; part++) {
      this.best[part] = this.scan(part * STEP, Math.min(values.length, (part + 1) * STEP));
    }
  }

  /** The first moment of the highest value in `from..to`, which is not empty. */
  at(from: number, to: number): number {
    const first = Math.ceil(from / STEP);
    const last = Math.floor(to / STEP);
    if (first >= last) return this.scan(from, to);
    let best = from < first * STEP ? this.scan(from, first * STEP) : this.best[first];
    for (let part = first; part < last; part++) {
      if (this.values[this.best[part]] > this.values[best]) best = this.best[part];
    }
    if (last * STEP < to) {
      const end = this.scan(last * STEP, to);
      if (this.values[end] > this.values[best]) best = end;
    }
    return best;
  }

  private scan(from: number, to: number): number {
    let best = from;
    for (let at = from + 1; at < to; at++) if (this.values[at] > this.values[best]) best = at;
    return best;
  }
}

export class Stack {
  private readonly kept: Float64Array;
  private readonly now: Float64Array;

  /** `of` gives the group of each block, below `groups`. */
  constructor(
    private readonly run: Run,
    private readonly of: Uint8Array,
    readonly groups: number,
  ) {
    const parts = Math.ceil(run.moments / STEP) + 1;
    this.kept = new Float64Array(parts * groups);
    this.now = new Float64Array(groups);
    for (let moment = 0; moment < run.moments; moment++) {
      if (moment % STEP === 0) this.kept.set(this.now, (moment / STEP) * groups);
      this.apply(moment);
    }
    this.kept.set(this.now, Math.ceil(run.moments / STEP) * groups);
  }

  /** Bytes by group after a moment. The array is used again by the next call. */
  at(moment: number): Float64Array {
    const part = Math.floor((moment + 1) / STEP);
    this.now.set(this.kept.subarray(part * this.groups, (part + 1) * this.groups));
    for (let at = part * STEP; at <= moment; at++) this.apply(at);
    return this.now;
  }

  private apply(moment: number): void {
    const event = this.run.event[moment];
    if (event > 0) this.now[this.of[event - 1]] += this.run.size[event - 1];
    else if (event < 0) this.now[this.of[-event - 1]] -= this.run.size[-event - 1];
  }
}
