// Blocks by a property: at most as many groups as there are colors, the rest together.

import { COLORS, color, rest, roleColor } from "../ui/palette";
import { words } from "../ui/format";
import type { Run } from "./run";

export const KEYS = [
  ["role", "Role"],
  ["module", "Module"],
  ["size", "Size"],
  ["op", "Operator"],
  ["line", "Line"],
  ["phase", "Phase"],
] as const;

export type Key = (typeof KEYS)[number][0];

export interface Groups {
  names: string[];
  /** The group of each block. */
  of: Uint8Array;
  color(group: number): string;
}

const MIB = 1024 * 1024;

/** Upper ends of the size classes: the small pool serves up to 1 MiB, a 20 MiB segment up to 10 MiB. */
const SIZES: [number, string][] = [
  [64 * 1024, "up to 64 KiB"],
  [MIB, "up to 1 MiB"],
  [10 * MIB, "up to 10 MiB"],
  [100 * MIB, "up to 100 MiB"],
  [1024 * MIB, "up to 1 GiB"],
  [Infinity, "more than 1 GiB"],
];

export function groups(run: Run, key: Key): Groups {
  switch (key) {
    case "role":
      return { names: run.roles.map(words), of: run.role, color: (group) => roleColor(run.roles[group]) };
    case "phase":
      return { names: run.phases.map(words), of: run.phase, color: (group) => color(group) };
    case "size": {
      const of = new Uint8Array(run.blocks);
      for (let row = 0; row < run.blocks; row++) of[row] = SIZES.findIndex(([most]) => run.size[row] <= most);
      return { names: SIZES.map(([, name]) => name), of, color: (group) => color(group) };
    }
    case "op":
      return largest(run, run.op, run.texts.map((text) => text || "(unknown operator)"));
    case "line":
      return largest(run, run.line, run.texts.map((text) => text || "(unknown line)"));
    case "module":
      return byModule(run);
  }
}

/** Modules at the depth at which most of them still have a color. */
function byModule(run: Run): Groups {
  const used = new Set<number>(run.module);
  const paths = new Map([...used].map((text) => [text, run.texts[text].split(" > ")]));
  const at = (depth: number): Map<number, string> => {
    return new Map([...paths].map(([text, path]) => [text, path.slice(0, depth).join(" > ")]));
  };
  let cut = at(1);
  for (let depth = 2; depth < 12; depth++) {
    const next = at(depth);
    const distinct = new Set(next.values()).size;
    if (distinct > COLORS && new Set(cut.values()).size > 3) break;
    cut = next;
    if (distinct > COLORS) break;
  }
  const names = new Array<string>(run.texts.length).fill("");
  const numbers = new Map<string, number>();
  const ids = new Uint32Array(run.blocks);
  const labels: string[] = [];
  for (const [text, name] of cut) {
    if (!numbers.has(name)) {
      numbers.set(name, labels.length);
      labels.push(name || "(no module)");
    }
    names[text] = name;
  }
  for (let row = 0; row < run.blocks; row++) ids[row] = numbers.get(names[run.module[row]]) ?? 0;
  return largest(run, ids, labels);
}

/** The groups with the most bytes at the peak; the others are one. */
function largest(run: Run, ids: Uint32Array, labels: string[]): Groups {
  const atPeak = new Map<number, number>();
  const ever = new Map<number, number>();
  for (let row = 0; row < run.blocks; row++) {
    const id = ids[row];
    ever.set(id, Math.max(ever.get(id) ?? 0, run.size[row]));
    if (run.isAllocatedAt(row, run.peak)) atPeak.set(id, (atPeak.get(id) ?? 0) + run.size[row]);
  }
  const rank = (id: number): number => (atPeak.get(id) ?? 0) * 1e3 + (ever.get(id) ?? 0);
  const order = [...ever.keys()].sort((a, b) => rank(b) - rank(a));
  const kept = order.length <= COLORS ? order : order.slice(0, COLORS - 1);
  const group = new Map(kept.map((id, at) => [id, at]));
  const of = new Uint8Array(run.blocks);
  for (let row = 0; row < run.blocks; row++) of[row] = group.get(ids[row]) ?? kept.length;
  const names = kept.map((id) => labels[id]);
  const others = order.length - kept.length;
  if (others > 0) names.push(`${others} others`);
  return { names, of, color: (at) => (at < kept.length ? color(at) : rest()) };
}
