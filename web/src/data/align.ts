// Moments of one run in another: by phase and iteration where both have them, else by the share of the run.

import type { Run, Span } from "./run";
import type { Maxima } from "./stack";

/** For a moment of `one`, the moment of `other` at the same place; null where `other` has no such phase. */
export function aligned(one: Run, other: Run): (moment: number) => number | null {
  const places = new Map(numbered(other).map(([name, span]) => [name, span]));
  const pairs = numbered(one).map(([name, span]) => [span, places.get(name)] as const);
  const known = pairs.reduce((sum, [span, found]) => sum + (found ? span.end - span.start : 0), 0);
  if (known < one.moments / 2 || places.size < 3) {
    const scale = one.moments === 0 ? 0 : other.moments / one.moments;
    return (moment) => Math.min(other.moments - 1, Math.floor(moment * scale));
  }
  const found = new Map(pairs);
  return (moment) => {
    const span = one.spanAt(moment);
    const place = span && found.get(span);
    if (!span || !place) return null;
    const share = (moment - span.start) / (span.end - span.start);
    return Math.min(place.end - 1, place.start + Math.floor(share * (place.end - place.start)));
  };
}

/** For moments `from..to` of a run, the highest of the values of another run at the same place; NaN where it has no such
 * phase. */
export function mostAligned(at: (moment: number) => number | null, values: Float64Array, maxima: Maxima, from: number, to: number): number {
  const [first, last] = [at(from), at(Math.max(from, to - 1))];
  if (first === null && last === null) return NaN;
  const begin = first ?? last ?? 0;
  const end = Math.max(begin, last ?? begin);
  return values[maxima.at(begin, end + 1)];
}

/** The spans with names that occur once: phase, iteration, and the number among those of the same phase and iteration. */
export function numbered(run: Run): [string, Span][] {
  const seen = new Map<string, number>();
  return run.spans.map((span) => {
    const name = `${span.iteration} ${span.phase}`;
    const count = seen.get(name) ?? 0;
    seen.set(name, count + 1);
    return [`${name} ${count}`, span];
  });
}
