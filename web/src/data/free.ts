// The largest free piece of the allocator's memory over time.

import { NEVER, type Run } from "./run";

/** Looks at blocks, at most, over all moments: beyond, some moments have the value of the one before. */
const MAX_WORK = 3e7;

/** The largest free piece of the segments at each of `moments`, which rise. */
export function largestFree(run: Run, moments: ArrayLike<number>): Float64Array {
  const found = new Float64Array(moments.length);
  const step = Math.max(1, Math.ceil((moments.length * mostAlive(run)) / MAX_WORK));
  const segments = [...run.segmentAddr.keys()].sort((a, b) => run.segmentAddr[a] - run.segmentAddr[b]);
  let alive: number[] = [];
  let next = 0;
  for (let at = 0; at < moments.length; at++) {
    if (at % step !== 0) {
      found[at] = found[at - 1];
      continue;
    }
    const moment = moments[at];
    const isHeld = (row: number): boolean => run.end[row] === NEVER || run.end[row] > moment;
    alive = alive.filter(isHeld);
    for (; next < run.blocks && run.start[next] <= moment; next++) if (isHeld(next)) alive.push(next);
    // Nearly sorted from the moment before.
    alive.sort((a, b) => run.addr[a] - run.addr[b]);
    found[at] = largestGap(run, segments, alive, moment);
  }
  return found;
}

/** Blocks that are allocated at once, at most. */
function mostAlive(run: Run): number {
  const change = new Int32Array(run.moments + 1);
  for (let row = 0; row < run.blocks; row++) {
    change[run.start[row]]++;
    if (run.end[row] !== NEVER) change[run.end[row]]--;
  }
  let [now, most] = [0, 0];
  for (const by of change) most = Math.max(most, (now += by));
  return most;
}

function largestGap(run: Run, segments: number[], alive: number[], moment: number): number {
  let [largest, at, end, block] = [0, 0, -1, 0];
  const gap = (until: number): void => void (largest = Math.max(largest, until - at));
  for (const row of segments) {
    if (run.segmentStart[row] > moment || run.segmentEnd[row] <= moment) continue;
    const from = run.segmentAddr[row];
    // Parts of an expandable segment that adjoin are one.
    const adjoins = from === end && (run.segmentKind[row] & 2) !== 0;
    if (!adjoins) at = from;
    end = from + run.segmentSize[row];
    while (block < alive.length && run.addr[alive[block]] < from) block++;
    for (; block < alive.length && run.addr[alive[block]] < end; block++) {
      gap(run.addr[alive[block]]);
      at = run.addr[alive[block]] + run.size[alive[block]];
    }
    gap(end);
  }
  return largest;
}
