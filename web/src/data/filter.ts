// The blocks that a search, a lifetime and a size leave.

import { NEVER, type Run } from "./run";

export class Filter {
  isActive = false;
  /** Blocks that match. */
  count = 0;
  private readonly matches: Uint8Array;

  constructor(private readonly run: Run) {
    this.matches = new Uint8Array(run.blocks).fill(1);
    this.count = run.blocks;
  }

  has(row: number): boolean {
    return this.matches[row] === 1;
  }

  /** `text` in operator, module, line, path, role, rule or evidence; freed within so many requests, or 0; bytes. */
  set(text: string, freedWithin: number, least: number): void {
    const { run, matches } = this;
    const wanted = text.trim().toLowerCase();
    this.isActive = wanted !== "" || freedWithin > 0 || least > 0;
    const holds = (name: string): number => (name.toLowerCase().includes(wanted) ? 1 : 0);
    const inTexts = Uint8Array.from(run.texts, holds);
    const inRoles = Uint8Array.from(run.roles, (role) => holds(role) | holds(role.replace(/_/g, " ")));
    const inRules = Uint8Array.from(["", ...run.rules], (rule) => (rule ? holds(rule) : 0));
    const inEvidences = Uint8Array.from(run.evidences, holds);
    const inPaths = new Uint8Array(run.pathEnds.length);
    for (let path = 0, at = 0; path < inPaths.length; path++) {
      for (; at < run.pathEnds[path]; at++) inPaths[path] |= inTexts[run.pathTexts[at]];
    }
    this.count = 0;
    for (let row = 0; row < run.blocks; row++) {
      const named =
        wanted === "" ||
        inTexts[run.op[row]] + inTexts[run.module[row]] + inTexts[run.line[row]] + inPaths[run.path[row]] > 0 ||
        inRoles[run.role[row]] + inRules[run.rule[row]] + inEvidences[run.evidence[row]] > 0;
      const short = freedWithin <= 0 || (run.freed[row] !== NEVER && run.freed[row] - run.start[row] <= freedWithin);
      const match = named && short && run.size[row] >= least;
      matches[row] = match ? 1 : 0;
      if (match) this.count++;
    }
  }

  bytesAt(moment: number): number {
    let sum = 0;
    for (const row of this.run.allocatedAt(moment)) if (this.has(row)) sum += this.run.size[row];
    return sum;
  }

  /** The largest matching blocks that are alive in `from..to`, largest first. */
  largestWithin(from: number, to: number, most: number, also: (row: number) => boolean): number[] {
    const { run } = this;
    const best: number[] = [];
    let smallest = 0;
    for (let row = 0; row < run.blocks && run.start[row] < to; row++) {
      if (run.freed[row] <= from || run.size[row] <= smallest || !this.has(row) || !also(row)) continue;
      best.push(row);
      if (best.length >= 2 * most) {
        best.sort((a, b) => run.size[b] - run.size[a] || a - b);
        best.length = most;
        smallest = run.size[best[most - 1]];
      }
    }
    best.sort((a, b) => run.size[b] - run.size[a] || a - b);
    return best.slice(0, most);
  }
}
