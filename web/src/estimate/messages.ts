// What page and worker say to each other, and the JSON that the module gives.

import type { Answer } from "../data/page";

/** A request to the worker; each is answered once, in order. */
export type Request =
  | { id: number; ask: "start"; module: ArrayBuffer }
  | { id: number; ask: "open"; name: string; bytes: ArrayBuffer }
  | { id: number; ask: "answer"; settings: Settings };

export type Reply = { id: number; text: string; took: number } | { id: number; failed: string };

/** What settings may name. */
export interface Catalog {
  program: string;
  known: { devices: Device[] };
  /** The names of those that are parts of devices. */
  slices: string[];
  optimizers: { name: string; class: string }[];
  losses: string[];
}

export interface Device {
  name: string;
  title: string;
  memory_bytes: number;
  shares_host_memory: boolean;
}

/** A graph: what it leaves open, and what was noted beside it. */
export interface About {
  torch: string | null;
  operators: number;
  parameters: number;
  batch: number | null;
  length: number | null;
  job: { training: boolean; optimizers: string[]; autocast: string | null; checkpoints: string[] } | null;
  repeated: { pattern: string; count: number }[];
}

/** What is asked about a graph. What is left out is as it was noted beside the graph. */
export interface Settings {
  device: string;
  training?: boolean;
  optimizer?: string;
  loss?: string;
  accumulation?: number;
  autocast?: string;
  dtype?: string;
  checkpoints?: string[];
  batch?: number;
  length?: number;
}

/** The JSON of `xmem estimate`, as far as the page reads it beside the report. */
export interface GraphAnswer extends Answer {
  curve: {
    requests: number;
    iteration_starts: { iteration: number; point: number }[];
    allocated_bytes: number[];
    reserved_bytes: number[];
  };
}
