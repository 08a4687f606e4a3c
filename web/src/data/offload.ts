// Offloading policies on an iteration: the pieces of device memory of each over time, and what it computes and copies.

import { Columns } from "./columns";
import type { OffloadHead, OffloadRowHead } from "./page";

/** A span of time, in nanoseconds. */
export type TimeSpan = readonly [number, number];

/** A policy with a placement. */
export class OffloadRow {
  readonly pieces: number;
  /** Nanoseconds since the start of the step. */
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly size: Float64Array;
  readonly role: Uint8Array;
  /** The row of the layer during which the piece is allocated. */
  readonly layer: Uint32Array;
  /** -1 where the placement has no common address. */
  readonly address: Float64Array;
  readonly computing: TimeSpan[];
  readonly toHost: TimeSpan[];
  readonly toDevice: TimeSpan[];

  constructor(
    readonly head: OffloadRowHead,
    bytes: Uint8Array,
  ) {
    const columns = new Columns(bytes, head.columns);
    this.start = columns.f64("start");
    this.pieces = this.start.length;
    this.end = columns.f64("lifetime").map((lifetime, row) => this.start[row] + lifetime);
    this.size = columns.f64("size");
    this.role = columns.u8("role");
    this.layer = columns.u32("layer");
    this.address = columns.f64("address").map((address) => address - 1);
    const spans = (name: string): TimeSpan[] => {
      const times = columns.f64(`${name}_time`);
      return Array.from(columns.f64(`${name}_start`), (start, row) => [start, start + times[row]]);
    };
    this.computing = spans("computing");
    this.toHost = spans("to_host");
    this.toDevice = spans("to_device");
  }
}

export class Offload {
  constructor(
    readonly head: OffloadHead,
    readonly rows: OffloadRow[],
  ) {}

  /** The row of a step that offloads nothing, with the placement of another. */
  without(row: OffloadRow): OffloadRow {
    return this.rows.find(({ head }) => head.policy === "none" && head.placement === row.head.placement) ?? row;
  }
}
