// Peak: what is allocated at a moment, by module, stack or line, and its largest blocks.

import type { App, View } from "../app";
import { TREES, tree, type Node, type TreeKey } from "../data/tree";
import { blockTable, panel, roleLegend, when } from "../ui/block";
import { choice, download, h, replace } from "../ui/dom";
import { bytes, commaBefore, percent, plural, request, shortLine } from "../ui/format";
import { MomentChooser } from "../ui/moment";
import { ink, roleColor } from "../ui/palette";

const ROW = 24;
/** Frames below this width, in pixels, are left out. */
const NARROWEST = 2;
const MAX_ROWS = 50;

export function peak(app: App): View {
  let key: TreeKey = "module";
  let zoomed: string[] = [];
  const graph = h("div", { class: "icicle", role: "group", aria: { label: "Icicle graph: press a frame to zoom in" } });
  const trail = h("p", { class: "status plain", id: "frames-shown" });
  const below = h("div");
  const legend = h("div");
  const draw = (): void => {
    drawGraph();
    const { run } = app;
    replace(legend, roleLegend(run));
    const rows = run.allocatedAt(app.moment).sort((a, b) => run.size[b] - run.size[a] || a - b);
    replace(
      below,
      app.block === null ? null : panel(app, app.block, () => choose(null)),
      blockTable(app, `Largest of ${plural(rows.length, "block")}`, rows, choose, { most: MAX_ROWS }),
    );
  };
  const choose = (row: number | null): void => {
    app.block = row;
    draw();
  };
  const moment = new MomentChooser(app, draw);
  const save = (): void => download("blocks.csv", "text/csv", csv(app));
  const root = h(
    "div",
    { class: "peak" },
    moment.root,
    h(
      "div",
      { class: "controls" },
      choice("Frames", TREES, key, (chosen) => {
        key = chosen;
        zoomed = [];
        drawGraph();
      }),
      h("div", { class: "buttons" }, h("button", { id: "download", on: { click: save } }, "Download blocks as CSV")),
    ),
    trail,
    legend,
    graph,
    below,
  );

  const drawGraph = (): void => {
    graph.replaceChildren();
    if (app.run.moments === 0) return;
    const whole = tree(app.run, app.moment, key);
    const way: Node[] = [whole];
    for (const name of zoomed) {
      const next = way[way.length - 1].children.find((child) => child.name === name);
      if (!next) break;
      way.push(next);
    }
    zoomed = way.slice(1).map((node) => node.name);
    const width = graph.clientWidth || 900;
    let deepest = 0;
    const place = (node: Node, path: string[], depth: number, left: number, span: number): void => {
      deepest = Math.max(deepest, depth);
      graph.append(frame(node, path, depth, left / width, span / width, whole.bytes));
      let at = left;
      for (const child of node.children) {
        const part = (child.bytes / node.bytes) * span;
        if (part >= NARROWEST) place(child, [...path, child.name], depth + 1, at, part);
        at += part;
      }
    };
    way.forEach((node, depth) => {
      if (depth < way.length - 1) {
        graph.append(frame(node, zoomed.slice(0, depth), depth, 0, 1, whole.bytes));
      } else if (node.bytes > 0) {
        place(node, zoomed, depth, 0, width);
      }
    });
    graph.style.height = `${(deepest + 1) * ROW}px`;
    const last = way[way.length - 1];
    trail.textContent = `${last === whole ? "All" : zoomed.join(" › ")}: ${bytes(last.bytes)} in ${plural(last.blocks, "block")}, ${app.atFailure ? "at" : "after"} request ${request(app.atFailure ? app.moment + 1 : app.moment)}${commaBefore(when(app.run, app.moment))}`;
  };
  const frame = (node: Node, path: string[], depth: number, left: number, span: number, whole: number): HTMLElement => {
    const label = `${node.name}: ${bytes(node.bytes)}, ${percent(node.bytes, whole)}, ${plural(node.blocks, "block")}`;
    const element = h("button", { class: "frame-node", title: label, aria: { label } }, `${shortLine(node.name)}  ${bytes(node.bytes)}`);
    const hue = depth === 0 ? roleColor("unknown") : roleColor(node.role);
    element.style.left = `${100 * left}%`;
    element.style.width = `calc(${100 * span}% - 1px)`;
    element.style.top = `${depth * ROW}px`;
    element.style.backgroundColor = hue;
    element.style.color = ink(hue);
    // One stop for Tab; arrow keys move between frames.
    element.tabIndex = depth === 0 ? 0 : -1;
    element.dataset.depth = depth.toString();
    element.addEventListener("click", () => {
      zoomed = path;
      drawGraph();
      [...graph.querySelectorAll<HTMLElement>("button")].find((other) => other.dataset.depth === path.length.toString())?.focus();
    });
    return element;
  };
  graph.addEventListener("keydown", (event) => {
    const here = document.activeElement as HTMLElement | null;
    if (!here || !graph.contains(here)) return;
    const depth = Number(here.dataset.depth);
    const all = [...graph.querySelectorAll<HTMLElement>("button")];
    const at = all.indexOf(here);
    const level = all.filter((other) => Number(other.dataset.depth) === depth);
    const moves: Record<string, () => HTMLElement | undefined> = {
      ArrowRight: () => level[level.indexOf(here) + 1],
      ArrowLeft: () => level[level.indexOf(here) - 1],
      ArrowDown: () => all.slice(at + 1).find((other) => Number(other.dataset.depth) === depth + 1),
      ArrowUp: () => all.slice(0, at).reverse().find((other) => Number(other.dataset.depth) === depth - 1),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    move()?.focus();
  });
  return {
    root,
    draw: () => {
      moment.draw();
      draw();
    },
    key: (event) => moment.key(event),
  };
}

/** All blocks of the moment, largest first. Names that a spreadsheet could take for a formula are quoted as text. */
export function csv(app: App): string {
  const { run } = app;
  const rows = run.allocatedAt(app.moment).sort((a, b) => run.size[b] - run.size[a] || a - b);
  const field = (text: string): string => {
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };
  const lines = ["bytes,requested_bytes,role,operator,module,line,allocated_in,rule"];
  for (const row of rows) {
    const texts = [run.roleName(row), run.texts[run.op[row]], run.texts[run.module[row]], run.texts[run.line[row]], when(run, run.start[row]), run.ruleName(row) ?? ""];
    lines.push([run.size[row].toString(), run.asked[row].toString(), ...texts.map(field)].join(","));
  }
  return `${lines.join("\r\n")}\r\n`;
}
