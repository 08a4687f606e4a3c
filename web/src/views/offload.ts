// Offload: policies that move saved tensors to the host and back, in memory and in time; the memory of one as a heap map
// beside that of the step without it, with what is computed and copied meanwhile.

import type { App, View } from "../app";
import type { Offload, OffloadRow, TimeSpan } from "../data/offload";
import type { Run } from "../data/run";
import { onFrame, Surface } from "../draw/canvas";
import { HeapMap, type HeapBlocks } from "../draw/heap";
import { rolesLegend } from "../ui/block";
import { h, replace, table } from "../ui/dom";
import { bytes, duration, plural, signed, signedDuration, words } from "../ui/format";
import { variable } from "../ui/palette";

/** The blocks of the table. */
const MAX_ROWS = 40;

/** One policy beside no policy. */
class Side {
  readonly heading = h("h2");
  readonly map: HeapMap;
  readonly streams: Streams;
  readonly root: HTMLElement;

  constructor(label: string) {
    this.map = new HeapMap(`${label}: which block lies where, over time`);
    this.streams = new Streams(`${label}: when the device computes, and when something is copied`);
    this.root = h("section", { class: "card", aria: { label } }, this.heading, this.map.root, this.streams.surface.canvas);
  }

  draw(run: Run, offload: Offload, row: OffloadRow, most: number, until: number): void {
    this.map.draw(placed(run, offload, row, until), most);
    this.streams.draw(row, until);
  }
}

export function offloaded(app: App): View {
  const root = h("div", { class: "plans" });
  const sides = [new Side("With the policy"), new Side("Without offloading")];
  let chosen = 0;
  const rows = (): [OffloadRow, OffloadRow] | null => {
    const { offload } = app.run;
    if (!offload) return null;
    const row = offload.rows[chosen] ?? offload.rows[0];
    return [row, offload.without(row)];
  };
  const paint = onFrame(() => {
    const { offload } = app.run;
    const pair = rows();
    if (!offload || !pair) return;
    const most = Math.max(1, ...pair.map(({ head }) => head.peak_bytes));
    const until = Math.max(1, ...pair.map(({ head }) => head.step_ns));
    pair.forEach((row, at) => sides[at].draw(app.run, offload, row, most, until));
  });
  let shown: Run | null = null;
  const draw = (): void => {
    const { run } = app;
    const { offload } = run;
    if (shown !== run) {
      shown = run;
      chosen = offload ? firstMoving(offload) : 0;
    }
    const pair = rows();
    if (!offload || !pair) {
      replace(root, h("p", { class: "muted" }, "There are no policies of this run: choose the first one, or write the page with --offload."));
      return;
    }
    const choose = (at: number): void => {
      chosen = at;
      draw();
      root.querySelector<HTMLElement>(`[data-policy="${at}"]`)?.focus();
    };
    pair.forEach(({ head }, at) => (sides[at].heading.textContent = `${head.policy}, ${head.placement}: ${bytes(head.peak_bytes)} in ${duration(head.step_ns)}`));
    replace(
      root,
      h("p", { class: "muted" }, `Iteration ${offload.head.iteration} on ${offload.head.device}, simulated: durations are those of a roofline model, and copies take ${(offload.head.link_bytes_per_second / 1e9).toFixed(1)} GB/s.`),
      policies(offload, chosen, choose),
      h("p", { class: "status plain", id: "offload-shown", aria: { live: "polite" } }, `Shown: ${pair[0].head.policy}, ${pair[0].head.placement}`),
      rolesLegend(run, new Set([...pair[0].role, ...pair[1].role])),
      h("div", { class: "sides" }, ...sides.map((side) => side.root)),
      largest(run, offload, pair[0]),
      h("details", {}, h("summary", {}, "The model of durations"), h("pre", {}, offload.head.model.join("\n"))),
    );
    paint();
  };
  return { root, draw };
}

/** The policy with the lowest peak among those that move something. */
function firstMoving(offload: Offload): number {
  const moving = [...offload.rows.keys()].filter((row) => offload.rows[row].head.to_host_bytes > 0);
  moving.sort((a, b) => offload.rows[a].head.peak_bytes - offload.rows[b].head.peak_bytes || a - b);
  return moving[0] ?? 0;
}

function policies(offload: Offload, chosen: number, choose: (row: number) => void): HTMLElement {
  const rows = offload.rows.map((row, at) => {
    const { head } = row;
    const without = offload.without(row).head;
    const open = h("button", { class: "link", data: { policy: at.toString() }, aria: { pressed: at === chosen ? "true" : "false" }, on: { click: () => choose(at) } }, at === chosen ? h("b", {}, head.policy) : head.policy);
    return [
      open,
      head.placement,
      h("span", { data: { figure: "peak", bytes: head.peak_bytes.toString() } }, bytes(head.peak_bytes)),
      row === offload.without(row) ? "" : signed(head.peak_bytes - without.peak_bytes),
      bytes(head.live_bytes),
      duration(head.step_ns),
      row === offload.without(row) ? "" : signedDuration(head.step_ns - without.step_ns),
      duration(head.exposed_ns),
      bytes(head.to_host_bytes),
      bytes(head.pinned_bytes),
    ];
  });
  const columns = [
    { title: "Policy" },
    { title: "Placement" },
    { title: "Peak", numeric: true },
    { title: "Change of peak", numeric: true },
    { title: "Live", numeric: true },
    { title: "Step", numeric: true },
    { title: "Change of step", numeric: true },
    { title: "Exposed copies", numeric: true },
    { title: "To host", numeric: true },
    { title: "Pinned on host", numeric: true },
  ];
  const caption = "Policies: press one to see its memory";
  return h("div", { id: "policies" }, table(caption, columns, rows));
}

function placed(run: Run, offload: Offload, row: OffloadRow, until: number): HeapBlocks {
  const describe = (piece: number): [string, string][] => [
    ["Layer", offload.head.layers[row.layer[piece]]],
    ["On the device", `${duration(row.end[piece] - row.start[piece])}, from ${duration(row.start[piece])}`],
  ];
  const { start, end, size, role, address: offset } = row;
  return { from: 0, to: until, roles: run.roles, start, end, size, role, offset, segments: null, describe };
}

/** The blocks of a policy that are most of its map, with their times and places. */
function largest(run: Run, offload: Offload, row: OffloadRow): HTMLElement {
  const area = (piece: number): number => row.size[piece] * (row.end[piece] - row.start[piece]);
  const pieces = [...row.size.keys()].sort((a, b) => area(b) - area(a) || a - b);
  const cells = pieces.slice(0, MAX_ROWS).map((piece) => [
    bytes(row.size[piece]),
    words(run.roles[row.role[piece]]),
    offload.head.layers[row.layer[piece]] || "–",
    duration(row.start[piece]),
    duration(row.end[piece]),
    row.address[piece] < 0 ? "–" : bytes(row.address[piece]),
  ]);
  const columns = [
    { title: "Size", numeric: true },
    { title: "Role" },
    { title: "Layer" },
    { title: "Allocated at", numeric: true },
    { title: "Freed at", numeric: true },
    { title: "Offset", numeric: true },
  ];
  const caption = `Blocks of ${row.head.policy} that hold the most memory for the longest time, of ${plural(row.pieces, "piece")} of device memory`;
  return table(caption, columns, cells);
}

/** What the device computes and what is copied, as bars over time. */
class Streams {
  readonly surface: Surface;

  constructor(label: string) {
    this.surface = new Surface(`${label}. The table of policies has the times.`);
    this.surface.canvas.className = "streams";
  }

  draw(row: OffloadRow, until: number): void {
    const { surface } = this;
    if (!surface.fit()) return;
    const context = surface.clear();
    const lanes: [string, TimeSpan[]][] = [["computing", row.computing], ["to host", row.toHost], ["to device", row.toDevice]];
    const height = surface.height / lanes.length;
    context.font = `11px ${variable("--sans")}`;
    context.textBaseline = "middle";
    lanes.forEach(([name, spans], lane) => {
      const top = lane * height;
      context.fillStyle = variable("--free");
      context.fillRect(0, top + 1, surface.width, height - 2);
      context.fillStyle = variable(lane === 0 ? "--curve" : "--accent");
      for (const [start, end] of spans) {
        const left = (start / until) * surface.width;
        context.fillRect(left, top + 1, Math.max(0.5, ((end - start) / until) * surface.width), height - 2);
      }
      const width = context.measureText(name).width;
      context.fillStyle = variable("--surface");
      context.fillRect(3, top + 2, width + 6, height - 4);
      context.fillStyle = variable("--ink");
      context.fillText(name, 6, top + height / 2 + 0.5);
    });
  }
}
