// The allocator's memory at a moment: segments, the blocks in them, and the pieces between.

import { NEVER, type Run } from "./run";

export interface Piece {
  /** Row of the block; -1 for a free piece. */
  row: number;
  offset: number;
  size: number;
  /** The program has freed it, and another stream still uses it. */
  waits: boolean;
}

export interface Segment {
  row: number;
  addr: number;
  size: number;
  stream: number;
  kind: string;
  used: number;
  pieces: Piece[];
}

export interface Memory {
  segments: Segment[];
  reserved: number;
  used: number;
  freePieces: number;
  largestFree: number;
}

/** What a segment is, in words. */
export function kind(code: number): string {
  const words = [code & 1 ? "large pool" : "small pool"];
  if (code & 2) words.push("expandable");
  if (code & 4) words.push("private");
  return words.join(", ");
}

/** Segments that adjoin and are of one kind are shown as one: those of an expandable segment. */
export function memoryAt(run: Run, moment: number): Memory {
  const alive: number[] = [];
  for (let row = 0; row < run.segments; row++) {
    if (run.segmentStart[row] <= moment && moment < run.segmentEnd[row]) alive.push(row);
  }
  alive.sort((a, b) => run.segmentAddr[a] - run.segmentAddr[b]);
  const segments: Segment[] = [];
  for (const row of alive) {
    const last = segments[segments.length - 1];
    const code = run.segmentKind[row];
    const adjoins = last && (code & 2) !== 0 && last.addr + last.size === run.segmentAddr[row] && last.kind === kind(code) && last.stream === run.segmentStream[row];
    if (adjoins) {
      last.size += run.segmentSize[row];
    } else {
      segments.push({ row, addr: run.segmentAddr[row], size: run.segmentSize[row], stream: run.segmentStream[row], kind: kind(code), used: 0, pieces: [] });
    }
  }
  for (let row = 0; row < run.blocks && run.start[row] <= moment; row++) {
    if (run.end[row] !== NEVER && run.end[row] <= moment) continue;
    const segment = around(segments, run.addr[row]);
    segment?.pieces.push({ row, offset: run.addr[row] - segment.addr, size: run.size[row], waits: run.freed[row] <= moment });
  }
  const memory: Memory = { segments, reserved: 0, used: 0, freePieces: 0, largestFree: 0 };
  for (const segment of segments) {
    fillGaps(segment);
    memory.reserved += segment.size;
    for (const piece of segment.pieces) {
      if (piece.row >= 0) {
        segment.used += piece.size;
        continue;
      }
      memory.freePieces++;
      memory.largestFree = Math.max(memory.largestFree, piece.size);
    }
    memory.used += segment.used;
  }
  return memory;
}

function around(segments: Segment[], addr: number): Segment | undefined {
  let low = 0;
  let high = segments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (segments[middle].addr <= addr) low = middle + 1;
    else high = middle;
  }
  const segment = segments[low - 1];
  return segment && addr < segment.addr + segment.size ? segment : undefined;
}

function fillGaps(segment: Segment): void {
  const blocks = segment.pieces.sort((a, b) => a.offset - b.offset);
  const pieces: Piece[] = [];
  let at = 0;
  const gap = (until: number): void => {
    if (until > at) pieces.push({ row: -1, offset: at, size: until - at, waits: false });
  };
  for (const block of blocks) {
    gap(block.offset);
    pieces.push(block);
    at = Math.max(at, block.offset + block.size);
  }
  gap(segment.size);
  segment.pieces = pieces;
}
