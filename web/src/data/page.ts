// The head of the page: its schema, and what it says about each run.

import type { ColumnHead } from "./columns";

export const SCHEMA = "xmem.page/1";

export interface Head {
  schema: string;
  title: string;
  program: string;
  runs: RunHead[];
}

export interface RunHead {
  name: string;
  answer: Answer;
  timeline: TimelineHead;
  what_ifs: WhatIf[];
  smallest_device_bytes: number | null;
  plan: PlanHead | null;
  offload: OffloadHead | null;
  fit: FitHead | null;
}

/** The figures under another setting. */
export interface WhatIf {
  options: string;
  verdict: string;
  decision: string;
  allocated_bytes: number;
  reserved_bytes: number;
  device_bytes: number;
}

/** A static plan of an iteration, beside what the allocator does with the same blocks. */
export interface PlanHead {
  planner: string | null;
  planned_bytes: number | null;
  lower_bound_bytes: number;
  proven: boolean;
  reserved_bytes: number;
  ops: string[];
  columns: ColumnHead[];
}

/** Offloading policies on the last iteration. Times are in nanoseconds. */
export interface OffloadHead {
  device: string;
  iteration: number;
  link_bytes_per_second: number;
  /** The parameters of the model of durations. */
  model: string[];
  layers: string[];
  rows: OffloadRowHead[];
}

/** A policy with a placement. */
export interface OffloadRowHead {
  policy: string;
  placement: string;
  step_ns: number;
  compute_ns: number;
  copying_ns: number;
  exposed_ns: number;
  recomputed_ns: number;
  to_host_bytes: number;
  to_device_bytes: number;
  pinned_bytes: number;
  live_bytes: number;
  peak_bytes: number;
  columns: ColumnHead[];
}

/** A device with its memory. */
export interface DeviceMemory {
  name: string;
  memory_bytes: number;
}

/** What a recording of a variant of the job says. */
export interface FitFigures {
  needs_bytes: number;
  fits: boolean;
  /** Whether it fits without releasing cached memory. */
  has_room: boolean;
  step_ns: number | null;
}

/** What makes the job fit (`xmem fit`). Measures are named by their rows. */
export interface FitHead {
  command: string;
  device: DeviceMemory;
  devices: DeviceMemory[];
  /** The number that is varied; `value` is that of the job as it is. Of processes, the fewest are looked for. */
  option: { name: string; value: number | null; is_fewest: boolean } | null;
  base: FitFigures;
  measures: { name: string; title: string; changes: string; code: string; places: string | null }[];
  /** Each measure alone, then those that were tried together. */
  tried: { measures: number[]; figures: FitFigures | null; failed: string | null }[];
  suggestion: { measures: number[]; run: string; runs: boolean | null } | null;
  /** The values that were recorded: of the job as it is, and with measures. */
  values: FitValues[];
  law: { points: [value: number, needs: number, low: number, high: number][]; off: number | null } | null;
  notes: string[];
  recordings: number;
}

export interface FitValues {
  measures: number[];
  points: (FitFigures & { value: number })[];
  /** Values that could not be recorded, and why. */
  refused: [number, string][];
  /** The largest value that fits, or the fewest. */
  fits: number | null;
  proven: boolean;
}

export interface TimelineHead {
  texts: string[];
  roles: string[];
  phases: string[];
  evidences: string[];
  rules: string[];
  /** Phase, iteration or -1, first moment, end. */
  spans: [number, number, number, number][];
  within: [number, number];
  peak: number;
  reserved_peak: number;
  out_of_memory: number | null;
  /** Recorded blocks that rules left out: rows of the lists, and bytes. */
  left_out: { rule: number; bytes: number; role: number; phase: number; iteration: number | null; op: number; module: number; line: number }[];
  /** Allocations that failed in the recorded job, with the last moment before each. */
  failures: { after: number; bytes: number; device_free_bytes: number | null }[];
  columns: ColumnHead[];
}

export interface Bounds {
  low: number;
  high: number;
}

export interface Place {
  iteration: number | null;
  phase: string;
  op: string | null;
  op_path: string[];
  module: string | null;
  line: string | null;
}

/** The part of the JSON answer (`xmem replay --format json --explain`) that the page reads. */
export interface Answer {
  schema: string;
  trace: string;
  verdict: string;
  decision: string;
  tight_by: string | null;
  summary: string;
  withheld: string[];
  warnings: number;
  settings: string;
  device: { name: string; title: string; memory_bytes: number; context_bytes: number; available_bytes: number };
  target: { torch: string; convolutions: string; allocator: { name: string; conf: string } };
  iterations: { from: number; to: number; of: number };
  peak: {
    allocated_bytes: number;
    requested_bytes: number;
    reserved_bytes: number;
    device_bytes: number;
    at: Place | null;
    reserved_at: Place | null;
  };
  range: {
    allocated_bytes: Bounds;
    reserved_bytes: Bounds;
    device_bytes: Bounds;
    confidence: string;
    uncertainties: { name: string; blocks: number | null; allocated_bytes: Bounds; reserved_bytes: Bounds }[];
  };
  headroom_bytes: number | null;
  shortfall_bytes: number | null;
  need_bytes: number | null;
  ample_bytes: number | null;
  min_capacity_bytes: number | null;
  out_of_memory: {
    at: Place | null;
    requested_bytes: number;
    tried_bytes: number;
    free_bytes: number;
    allocated_bytes: number;
    reserved_bytes: number;
    needed_bytes: number;
  } | null;
  by_role: Record<string, number>;
  per_iteration: { iteration: number | null; allocated_bytes: number; reserved_bytes: number }[];
  fragmentation: { at: string; reserved_bytes: number; unused_bytes: number; releasable_bytes: number; pieces: number; largest_piece_bytes: number };
  allocator: { requests: number; allocations: number; segments_peak: number; device_allocs: number; retries: number };
  rules: Rule[] | null;
  diagnostics: { code: string; severity: string; message: string; count: number }[];
}

export interface Rule {
  rule: string;
  summary: string;
  source: string;
  dropped: { blocks: number; bytes: number };
  added: { blocks: number; bytes: number };
  resized: { blocks: number; bytes_before: number; bytes_after: number };
  retimed: { blocks: number; bytes: number };
}
