// The allocator's memory at a moment: segments, the blocks in them, and the pieces between.

import { NEVER, type AtFailure, type Run } from "./run";

export interface Piece {
  /** Row of the block; -1 for a free piece. */
  row: number;
  offset: number;
  size: number;
  /** The program has freed it, and another stream still uses it. */
  waits: boolean;
}

export interface Segment {
  addr: number;
  size: number;
  stream: number;
  kind: string;
  isExpandable: boolean;
  /** The moment at which it was obtained. */
  start: number;
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

/** The memory after a request, as far as the run is that of a device with space for all. */
export function memoryAt(run: Run, moment: number): Memory {
  const segments: Segment[] = [];
  for (let row = 0; row < run.segments; row++) {
    if (run.segmentStart[row] <= moment && moment < run.segmentEnd[row]) {
      segments.push(segment(run.segmentAddr[row], run.segmentSize[row], run.segmentStream[row], run.segmentKind[row], run.segmentStart[row]));
    }
  }
  const blocks: Placed[] = [];
  for (let row = 0; row < run.blocks && run.start[row] <= moment; row++) {
    if (run.end[row] === NEVER || run.end[row] > moment) blocks.push({ row, addr: run.addr[row], size: run.size[row], waits: run.freed[row] <= moment });
  }
  return arranged(segments, blocks);
}

/** The memory that the request met which the device cannot serve. */
export function memoryAtFailure(run: Run, { row, addr, size, segmentAddr, segmentSize, segmentStream, segmentKind, segmentStart }: AtFailure): Memory {
  const segments = Array.from(segmentAddr, (at, of) => segment(at, segmentSize[of], segmentStream[of], segmentKind[of], segmentStart[of]));
  const last = (run.outOfMemory ?? 0) - 1;
  const blocks = Array.from(row, (row, at) => ({ row, addr: addr[at], size: size[at], waits: run.freed[row] <= last }));
  return arranged(segments, blocks);
}

interface Placed {
  row: number;
  addr: number;
  size: number;
  waits: boolean;
}

function segment(addr: number, size: number, stream: number, code: number, start: number): Segment {
  return { addr, size, stream, kind: kind(code), isExpandable: (code & 2) !== 0, start, used: 0, pieces: [] };
}

/** Blocks in their segments. Segments that adjoin and are of one kind are shown as one: those of an expandable
 * segment. */
function arranged(all: Segment[], blocks: Placed[]): Memory {
  all.sort((a, b) => a.addr - b.addr);
  const segments: Segment[] = [];
  for (const one of all) {
    const last = segments[segments.length - 1];
    const adjoins = last && one.isExpandable && last.addr + last.size === one.addr && last.kind === one.kind && last.stream === one.stream;
    if (adjoins) last.size += one.size;
    else segments.push(one);
  }
  for (const { row, addr, size, waits } of blocks) {
    const segment = around(segments, addr);
    segment?.pieces.push({ row, offset: addr - segment.addr, size, waits });
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
