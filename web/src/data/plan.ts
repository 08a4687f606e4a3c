// A static plan of an iteration, and what the allocator does with the same blocks.

import { Columns } from "./columns";
import type { PlanHead } from "./page";

export class Plan {
  readonly blocks: number;
  readonly start: Uint32Array;
  readonly end: Uint32Array;
  readonly size: Float64Array;
  readonly role: Uint8Array;
  readonly op: Uint32Array;
  /** Where the plan puts each block; none if there is no plan. */
  readonly offset: Float64Array | null;
  /** Where the allocator puts each block: with segments one above the other, as they were obtained; -1 if nowhere. */
  readonly actual: Float64Array;
  readonly segmentBase: Float64Array;
  readonly segmentSize: Float64Array;
  readonly segmentStart: Uint32Array;
  readonly segmentEnd: Uint32Array;
  readonly firstTick: number;
  readonly lastTick: number;
  /** The top of the allocator's segments. */
  readonly top: number;

  constructor(
    readonly head: PlanHead,
    bytes: Uint8Array,
  ) {
    const columns = new Columns(bytes, head.columns);
    this.start = columns.u32("start");
    this.blocks = this.start.length;
    this.end = columns.u32("lifetime").map((lifetime, row) => this.start[row] + lifetime);
    this.size = columns.f64("size");
    this.role = columns.u8("role");
    this.op = columns.u32("op");
    this.offset = head.planner === null ? null : columns.f64("offset");
    this.firstTick = this.start.reduce((least, tick) => Math.min(least, tick), Infinity);
    this.lastTick = this.end.reduce((most, tick) => Math.max(most, tick), 0);
    this.segmentSize = columns.f64("segment_size");
    this.segmentStart = columns.u32("segment_start");
    this.segmentEnd = columns.u32("segment_lifetime").map((lifetime, row) => (lifetime === 0 ? this.lastTick : this.segmentStart[row] + lifetime - 1));
    this.segmentBase = new Float64Array(this.segmentSize.length);
    let base = 0;
    for (let row = 0; row < this.segmentSize.length; row++) {
      this.segmentBase[row] = base;
      base += this.segmentSize[row];
    }
    this.top = base;
    const segment = columns.u32("segment");
    this.actual = columns.f64("within").map((within, row) => (segment[row] === 0 ? -1 : this.segmentBase[segment[row] - 1] + within));
  }
}
