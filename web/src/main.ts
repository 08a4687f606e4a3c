// The page: reads its data, and shows one view at a time.

import { App, type View, type ViewName } from "./app";
import { unpack } from "./data/columns";
import { SCHEMA, type Head } from "./data/page";
import { Offload, OffloadRow } from "./data/offload";
import { Plan } from "./data/plan";
import { Run } from "./data/run";
import { drawNow } from "./draw/canvas";
import { deviceName } from "./ui/answer";
import { h, replace } from "./ui/dom";
import { help } from "./ui/help";
import { choose, theme, type Theme } from "./ui/palette";
import { allocator } from "./views/allocator";
import { compare } from "./views/compare";
import { fitted } from "./views/fit";
import { overview } from "./views/overview";
import { offloaded } from "./views/offload";
import { planned } from "./views/plan";
import { peak } from "./views/peak";
import { rules } from "./views/rules";
import { timeline } from "./views/timeline";

const VIEWS: readonly { name: ViewName; title: string; make: (app: App) => View }[] = [
  { name: "overview", title: "Overview", make: overview },
  { name: "timeline", title: "Active memory timeline", make: timeline },
  { name: "allocator", title: "Allocator state", make: allocator },
  { name: "peak", title: "Peak", make: peak },
  { name: "rules", title: "Rules and uncertainty", make: rules },
  { name: "fit", title: "Fit", make: fitted },
  { name: "plan", title: "Plan", make: planned },
  { name: "offload", title: "Offload", make: offloaded },
  { name: "compare", title: "Compare", make: compare },
];

async function start(): Promise<void> {
  choose(null);
  const page = document.getElementById("page");
  if (!page) return;
  replace(page, h("p", { class: "view muted" }, "Reading the data …"));
  try {
    const head = JSON.parse(new TextDecoder().decode(await unpack("data-head"))) as Head;
    if (head.schema !== SCHEMA) throw new Error(`the data has schema ${head.schema}, not ${SCHEMA}`);
    const runs: Run[] = [];
    for (const [row, of] of head.runs.entries()) {
      const run = new Run(of, await unpack(`data-run-${row}`));
      if (of.plan) run.plan = new Plan(of.plan, await unpack(`data-plan-${row}`));
      if (of.offload) {
        const rows: OffloadRow[] = [];
        for (const [policy, head] of of.offload.rows.entries()) rows.push(new OffloadRow(head, await unpack(`data-offload-${row}-${policy}`)));
        run.offload = new Offload(of.offload, rows);
      }
      runs.push(run);
    }
    if (runs.length === 0) throw new Error("the page has no run");
    show(page, new App(head, runs));
  } catch (error) {
    replace(page, h("p", { class: "view", role: "alert" }, `This page cannot be shown: ${error instanceof Error ? error.message : String(error)}`));
    throw error;
  }
}

function show(page: HTMLElement, app: App): void {
  const made = new Map<ViewName, View>();
  const has: Partial<Record<ViewName, boolean>> = { compare: app.runs.length > 1, fit: app.runs.some((run) => run.fit), plan: app.runs.some((run) => run.plan), offload: app.runs.some((run) => run.offload) };
  const views = VIEWS.filter((view) => has[view.name] ?? true);
  const links = views.map(({ name, title }) => h("a", { href: `#${name}`, id: `open-${name}` }, title));
  const place = h("section", { class: "view", id: "view", tabindex: -1 });
  const said = h("p", { class: "said", role: "status" });
  const dialog = help(views.map((view) => view.title));
  let open: ViewName | null = null;

  const draw = (): void => {
    if (open) made.get(open)?.draw();
  };
  const openNamed = (name: ViewName): void => {
    const view = views.find((view) => view.name === name) ?? views[0];
    links.forEach((link, at) => {
      if (views[at] === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    });
    if (!made.has(view.name)) made.set(view.name, view.make(app));
    open = view.name;
    place.setAttribute("aria-label", view.title);
    place.dataset.view = view.name;
    document.title = `${view.title} – ${app.head.title} – xmem`;
    said.textContent = view.title;
    replace(place, made.get(view.name)?.root);
    draw();
    if (location.hash !== `#${view.name}`) history.replaceState(null, "", `#${view.name}`);
  };
  app.open = openNamed;
  app.redraw = draw;

  replace(
    page,
    h("a", { class: "skip", href: "#view", on: { click: (event) => { event.preventDefault(); place.focus(); } } }, "Skip to the view"),
    h(
      "header",
      { class: "top" },
      h("h1", {}, "xmem"),
      chooser(app, draw),
      h(
        "div",
        { class: "tools" },
        h("button", { id: "theme", on: { click: () => { choose(theme() === "dark" ? "light" : "dark"); draw(); } } }, "Light or dark"),
        h("button", { id: "help", on: { click: () => dialog.showModal() } }, "Keys"),
      ),
      h("nav", { aria: { label: "Views" } }, ...links),
    ),
    place,
    said,
    dialog,
  );
  const named = (): ViewName => (views.find((view) => `#${view.name}` === location.hash) ?? views[0]).name;
  addEventListener("hashchange", () => openNamed(named()));
  addEventListener("resize", draw);
  // Paper is light, and opens nothing.
  let shownIn: Theme | null = null;
  let opened: HTMLDetailsElement[] = [];
  addEventListener("beforeprint", () => {
    shownIn = theme();
    choose("light");
    draw();
    drawNow();
    opened = [...place.querySelectorAll<HTMLDetailsElement>("details:not([open])")];
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
    choose(shownIn);
    draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { choose(null); draw(); });
  document.addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    if (target.matches("input:not([type=radio]), select, textarea")) return;
    if (event.key === "?") dialog.showModal();
    else if (/^[1-9]$/.test(event.key) && Number(event.key) <= views.length) openNamed(views[Number(event.key) - 1].name);
    else if (event.key === "/" && open !== "timeline") {
      openNamed("timeline");
      made.get("timeline")?.key?.(event);
    } else {
      if (target.matches("input, button, a, summary") && /^(Arrow|Enter| |Home|End)/.test(event.key)) return;
      if (!(open && made.get(open)?.key?.(event))) return;
    }
    event.preventDefault();
  });
  openNamed(named());
}

/** The name of the run, or the choice among several. */
function chooser(app: App, draw: () => void): HTMLElement {
  if (app.runs.length === 1) return h("p", { class: "run", title: app.run.name }, `${app.run.name} on ${deviceName(app.run.answer)}`);
  app.show = (run) => {
    select.value = app.runs.indexOf(run).toString();
    app.choose(run);
    draw();
  };
  const select = h("select", { id: "run", aria: { label: "Run" } }, ...app.runs.map((run, at) => h("option", { value: at.toString() }, run.name)));
  select.addEventListener("change", () => {
    app.show(app.runs[Number(select.value)]);
  });
  return select;
}

void start();
