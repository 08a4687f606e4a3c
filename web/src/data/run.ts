// A run with its blocks, moments and segments as columns.

import { clipped } from "../ui/dom";
import { Columns } from "./columns";
import { Fit } from "./fit";
import type { Answer, RunHead, WhatIf } from "./page";
import type { Offload } from "./offload";
import type { Plan } from "./plan";

/** A moment after the last one. */
export const NEVER = 0xffffffff;

export interface Span {
  phase: string;
  iteration: number | null;
  start: number;
  end: number;
}

/** A recorded block that a rule left out. */
export interface LeftOut {
  rule: string;
  bytes: number;
  role: string;
  phase: string;
  iteration: number | null;
  op: string;
  module: string;
  line: string;
}

/** An allocation that failed in the recorded job. */
export interface Failure {
  /** The last moment before it. */
  after: number;
  bytes: number;
  deviceFree: number | null;
}

/** What the request that the device cannot serve meets, on the device itself. */
export interface AtFailure {
  row: Uint32Array;
  addr: Float64Array;
  size: Float64Array;
  segmentAddr: Float64Array;
  segmentSize: Float64Array;
  segmentStream: Uint32Array;
  segmentKind: Uint8Array;
  segmentStart: Uint32Array;
}

export class Run {
  readonly name: string;
  readonly answer: Answer;
  readonly whatIfs: WhatIf[];
  readonly smallestDevice: number | null;
  plan: Plan | null = null;
  offload: Offload | null = null;
  readonly fit: Fit | null;
  readonly texts: string[];
  readonly roles: string[];
  readonly phases: string[];
  readonly evidences: string[];
  readonly rules: string[];
  readonly spans: Span[];
  readonly within: [number, number];
  readonly peak: number;
  readonly reservedPeak: number;
  readonly outOfMemory: number | null;
  /** The largest of each rule. */
  readonly leftOut: LeftOut[];
  readonly failures: Failure[];
  readonly atFailure: AtFailure | null;
  /** The phases of the run are known. */
  readonly hasPhases: boolean;

  // Moments.
  readonly moments: number;
  /** Nanoseconds since the first request, in the recording. */
  readonly time: Float64Array;
  readonly allocated: Float64Array;
  readonly active: Float64Array;
  readonly requested: Float64Array;
  readonly reserved: Float64Array;
  /** The block that a moment's request allocates, as row + 1; frees, as -(row + 1); or none, 0. */
  readonly event: Int32Array;

  // Blocks.
  readonly blocks: number;
  readonly size: Float64Array;
  readonly asked: Float64Array;
  /** Bytes that were recorded, plus 1; 0 if the recording does not have the block. */
  readonly recorded: Float64Array;
  readonly addr: Float64Array;
  /** Row in the segments plus 1; 0 for none. */
  readonly segment: Uint32Array;
  readonly stream: Uint32Array;
  readonly start: Uint32Array;
  readonly freed: Uint32Array;
  readonly end: Uint32Array;
  readonly role: Uint8Array;
  readonly phase: Uint8Array;
  /** Iteration plus 1; 0 before the first. */
  readonly iteration: Uint32Array;
  readonly evidence: Uint16Array;
  /** Row in the rules plus 1; 0 for none. */
  readonly rule: Uint16Array;
  readonly path: Uint32Array;
  readonly op: Uint32Array;
  readonly module: Uint32Array;
  readonly line: Uint32Array;

  // Paths: the texts of path p are at pathEnds[p - 1] .. pathEnds[p].
  readonly pathEnds: Uint32Array;
  readonly pathTexts: Uint32Array;

  // Segments.
  readonly segments: number;
  readonly segmentAddr: Float64Array;
  readonly segmentSize: Float64Array;
  readonly segmentStream: Uint32Array;
  /** 0 small, 1 large; plus 2 if expandable, plus 4 in a private pool. */
  readonly segmentKind: Uint8Array;
  readonly segmentStart: Uint32Array;
  readonly segmentEnd: Uint32Array;

  constructor(head: RunHead, bytes: Uint8Array) {
    const { timeline } = head;
    const columns = new Columns(bytes, timeline.columns);
    this.name = head.name;
    this.answer = head.answer;
    this.whatIfs = head.what_ifs;
    this.fit = head.fit ? new Fit(head.fit) : null;
    this.smallestDevice = head.smallest_device_bytes;
    this.texts = timeline.texts.map(clipped);
    this.roles = timeline.roles;
    this.phases = timeline.phases;
    this.evidences = timeline.evidences;
    this.rules = timeline.rules;
    this.spans = timeline.spans.map(([phase, iteration, start, end]) => {
      return { phase: timeline.phases[phase], iteration: iteration < 0 ? null : iteration, start, end };
    });
    this.within = timeline.within;
    this.peak = timeline.peak;
    this.reservedPeak = timeline.reserved_peak;
    this.outOfMemory = timeline.out_of_memory;
    this.leftOut = timeline.left_out.map(({ rule, bytes, role, phase, iteration, op, module, line }) => ({
      rule: this.rules[rule],
      bytes,
      role: this.roles[role],
      phase: this.phases[phase],
      iteration,
      op: this.texts[op],
      module: this.texts[module],
      line: this.texts[line],
    }));
    this.failures = timeline.failures.map(({ after, bytes, device_free_bytes: deviceFree }) => ({ after, bytes, deviceFree }));

    this.time = sinceFirst(columns.f64("time"));
    this.moments = this.time.length;
    this.allocated = columns.f64("allocated");
    this.active = sum(columns.f64("waiting"), this.allocated);
    this.requested = difference(this.allocated, columns.f64("rounding"));
    this.reserved = columns.f64("reserved");

    this.asked = columns.f64("asked");
    this.blocks = this.asked.length;
    this.size = sum(columns.f64("rounded"), this.asked);
    this.recorded = columns.f64("recorded");
    this.addr = columns.f64("addr");
    this.segment = columns.u32("segment");
    this.stream = columns.u32("stream");
    this.start = columns.u32("start");
    this.freed = after(this.start, columns.u32("freed"));
    this.end = after(this.start, columns.u32("end"));
    this.role = columns.u8("role");
    this.phase = columns.u8("phase");
    this.iteration = columns.u32("iteration");
    this.evidence = columns.u16("evidence");
    this.rule = columns.u16("rule");
    this.path = columns.u32("path");
    this.op = columns.u32("op");
    this.module = columns.u32("module");
    this.line = columns.u32("line");
    this.pathEnds = columns.u32("path_ends");
    this.pathTexts = columns.u32("path_texts");

    this.segmentAddr = columns.f64("segment_addr");
    this.segments = this.segmentAddr.length;
    this.segmentSize = columns.f64("segment_size");
    this.segmentStream = columns.u32("segment_stream");
    this.segmentKind = columns.u8("segment_kind");
    this.segmentStart = columns.u32("segment_start");
    this.segmentEnd = after(this.segmentStart, columns.u32("segment_end"));

    this.atFailure = timeline.out_of_memory === null ? null : {
      row: columns.u32("failed_row"),
      addr: columns.f64("failed_addr"),
      size: columns.f64("failed_size"),
      segmentAddr: columns.f64("failed_segment_addr"),
      segmentSize: columns.f64("failed_segment_size"),
      segmentStream: columns.u32("failed_segment_stream"),
      segmentKind: columns.u8("failed_segment_kind"),
      segmentStart: columns.u32("failed_segment_start"),
    };
    this.hasPhases = this.spans.some((span) => span.phase !== "init");

    this.event = new Int32Array(this.moments);
    for (let row = 0; row < this.blocks; row++) {
      this.event[this.start[row]] = row + 1;
      if (this.freed[row] !== NEVER) this.event[this.freed[row]] = -(row + 1);
    }
  }

  /** The texts of a block's path, outermost first. */
  pathOf(row: number): string[] {
    const path = this.path[row];
    const from = path === 0 ? 0 : this.pathEnds[path - 1];
    return Array.from(this.pathTexts.subarray(from, this.pathEnds[path]), (text) => this.texts[text]);
  }

  isAllocatedAt(row: number, moment: number): boolean {
    return this.start[row] <= moment && moment < this.freed[row];
  }

  /** The rows of the blocks that are allocated at a moment, in the order of allocation. */
  allocatedAt(moment: number): number[] {
    const rows: number[] = [];
    for (let row = 0; row < this.blocks && this.start[row] <= moment; row++) {
      if (moment < this.freed[row]) rows.push(row);
    }
    return rows;
  }

  spanAt(moment: number): Span | undefined {
    let low = 0;
    let high = this.spans.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.spans[middle].end <= moment) low = middle + 1;
      else high = middle;
    }
    return this.spans[low];
  }

  roleName(row: number): string {
    return this.roles[this.role[row]];
  }

  ruleName(row: number): string | null {
    const rule = this.rule[row];
    return rule === 0 ? null : this.rules[rule - 1];
  }
}

/** Times since the first one. */
function sinceFirst(times: Float64Array): Float64Array {
  const first = times[0] ?? 0;
  for (let at = 0; at < times.length; at++) times[at] -= first;
  return times;
}

function sum(left: Float64Array, right: Float64Array): Float64Array {
  for (let at = 0; at < left.length; at++) left[at] += right[at];
  return left;
}

function difference(left: Float64Array, right: Float64Array): Float64Array {
  for (let at = 0; at < left.length; at++) right[at] = left[at] - right[at];
  return right;
}

/** Moments that are written as distances; 0 stands for never. */
function after(start: Uint32Array, distance: Uint32Array): Uint32Array {
  for (let at = 0; at < distance.length; at++) distance[at] = distance[at] === 0 ? NEVER : start[at] + distance[at];
  return distance;
}
