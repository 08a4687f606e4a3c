// The blocks of a moment as a tree of names.

import { words } from "../ui/format";
import type { Run } from "./run";

export const TREES = [
  ["module", "Module"],
  ["stack", "Stack"],
  ["line", "Line"],
  ["op", "Operator"],
  ["role", "Role"],
] as const;

export type TreeKey = (typeof TREES)[number][0];

export interface Node {
  name: string;
  bytes: number;
  blocks: number;
  /** The role with the most bytes in it. */
  role: string;
  children: Node[];
}

interface Growing {
  name: string;
  bytes: number;
  blocks: number;
  roles: Map<number, number>;
  children: Map<string, Growing>;
}

/** The deepest level of names: a damaged trace may have any. */
const DEEPEST = 200;

function namesOf(run: Run, row: number, key: TreeKey): string[] {
  const line = run.texts[run.line[row]] || "(unknown line)";
  switch (key) {
    case "module": {
      const module = run.texts[run.module[row]];
      return module ? module.split(" > ") : ["(no module)"];
    }
    case "stack":
      return [...run.pathOf(row).slice(0, DEEPEST), line];
    case "line":
      return [line, run.texts[run.op[row]] || "(unknown operator)"];
    case "op":
      return [run.texts[run.op[row]] || "(unknown operator)", line];
    case "role":
      return [words(run.roleName(row)), run.texts[run.op[row]] || "(unknown operator)"];
  }
}

/** The tree of what is allocated at a moment. */
export function tree(run: Run, moment: number, key: TreeKey): Node {
  const grow = (name: string): Growing => ({ name, bytes: 0, blocks: 0, roles: new Map(), children: new Map() });
  const root = grow("all");
  const known = new Map<string, Growing[]>();
  for (const row of run.allocatedAt(moment)) {
    const id = `${run.module[row]} ${run.path[row]} ${run.line[row]} ${run.op[row]} ${run.role[row]}`;
    let way = known.get(id);
    if (!way) {
      way = [root];
      for (const name of namesOf(run, row, key)) {
        const parent = way[way.length - 1];
        let child = parent.children.get(name);
        if (!child) parent.children.set(name, (child = grow(name)));
        way.push(child);
      }
      known.set(id, way);
    }
    for (const node of way) {
      node.bytes += run.size[row];
      node.blocks += 1;
      node.roles.set(run.role[row], (node.roles.get(run.role[row]) ?? 0) + run.size[row]);
    }
  }
  return finish(run, root);
}

function finish(run: Run, node: Growing): Node {
  let role = 0;
  let most = -1;
  for (const [candidate, bytes] of node.roles) if (bytes > most) [role, most] = [candidate, bytes];
  const children = [...node.children.values()].map((child) => finish(run, child));
  children.sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1));
  return { name: node.name, bytes: node.bytes, blocks: node.blocks, role: run.roles[role], children };
}
