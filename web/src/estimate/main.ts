// The page of `xmem estimate`: a graph is opened, and its answer follows the controls.

import { drawNow } from "../draw/canvas";
import { h, replace } from "../ui/dom";
import { plural } from "../ui/format";
import { choose, theme } from "../ui/palette";
import { Batches, figuresOf } from "./batches";
import { commandLine } from "./command";
import { Controls, parameters } from "./controls";
import { bytesOf, examples, unpacked } from "./data";
import { Engine } from "./engine";
import type { About, Settings } from "./messages";
import { Result } from "./result";
import { withoutWeights } from "./slim";

/** The milliseconds for which controls must rest before an answer is asked for. */
const REST = 60;

/** Larger graphs are not given to the module, whose memory has 32-bit addresses. */
const MOST_BYTES = 2 ** 30;

async function start(): Promise<void> {
  choose(null);
  const page = document.getElementById("page");
  if (!page) return;
  try {
    const engine = new Engine(new TextDecoder().decode(await unpacked("data-worker")));
    const catalog = await engine.start((await unpacked("data-module")).buffer as ArrayBuffer);
    const app = new Page(engine, (changed) => new Controls(catalog, changed));
    replace(page, ...app.parts());
    document.documentElement.dataset.ready = catalog.program;
  } catch (error) {
    replace(page, h("p", { class: "view", role: "alert" }, `This page cannot be shown: ${said(error)}`));
    throw error;
  }
}

class Page {
  private readonly controls: Controls;
  private readonly result = new Result();
  private readonly about = h("p", { class: "muted", id: "about" });
  private readonly problem = h("p", { class: "panel bad", id: "problem", role: "alert", hidden: true });
  private readonly status = h("p", { class: "said", role: "status" });
  private readonly intro = introduction();
  private readonly work = h("div", { class: "work", hidden: true });
  private name = "";
  /** Counts what was asked for: answers to earlier questions are not shown. */
  private asked = 0;
  private resting = 0;
  private readonly searched = new Map<string, Batches>();

  constructor(
    private readonly engine: Engine,
    makeControls: (changed: () => void) => Controls,
  ) {
    this.controls = makeControls(() => this.rest());
    const redraw = (): void => this.result.draw();
    addEventListener("resize", redraw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      choose(null);
      redraw();
    });
  }

  parts(): HTMLElement[] {
    const file = h("input", { id: "file", type: "file", class: "said" });
    file.accept = ".pt2,.onnx,.zip";
    file.addEventListener("change", () => {
      if (file.files?.[0]) void this.read(file.files[0]);
      file.value = "";
    });
    const drop = h(
      "section",
      { class: "drop", id: "drop", aria: { label: "Graph" } },
      h("div", {}, h("label", { class: "button", for: "file" }, "Open a graph"), file, h("span", { class: "muted" }, " or drop it here: what ", h("code", {}, "xmem export"), ", ", h("code", {}, "torch.export.save"), " or ", h("code", {}, "torch.onnx.export"), " wrote. It stays in this browser.")),
      h("div", { class: "buttons" }, ...examples().map(({ id, title }) => h("button", { id: `try-${id}`, on: { click: () => void this.example(id) } }, `Try ${title}`))),
    );
    this.takeDrops(drop);
    replace(this.work, h("aside", {}, this.controls.root), this.result.root);
    return [
      h(
        "header",
        { class: "top estimate" },
        h("h1", {}, "xmem estimate"),
        h("p", { class: "run" }, "GPU memory of a PyTorch job, from the graph of its model"),
        h("div", { class: "tools" }, h("button", { id: "theme", on: { click: () => this.turn() } }, "Light or dark")),
      ),
      h("div", { class: "view" }, drop, this.problem, this.intro, this.about, this.work, this.status),
    ];
  }

  private takeDrops(drop: HTMLElement): void {
    addEventListener("dragover", (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
    addEventListener("dragleave", (event) => event.relatedTarget === null && drop.classList.remove("over"));
    addEventListener("drop", (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      const file = event.dataTransfer?.files[0];
      if (file) void this.read(file);
    });
  }

  private turn(): void {
    choose(theme() === "dark" ? "light" : "dark");
    this.result.draw();
    drawNow();
    // Colors of roles are in elements.
    void this.ask();
  }

  private async read(file: File): Promise<void> {
    try {
      const bytes = await withoutWeights(file);
      if (bytes.byteLength > MOST_BYTES) throw new Error("the graph is larger than 1 GiB");
      await this.open(file.name, bytes);
    } catch (error) {
      this.refuse(file.name, said(error));
    }
  }

  private async example(id: string): Promise<void> {
    await this.open(`${id}.pt2`, bytesOf(`example-${id}`).buffer as ArrayBuffer);
  }

  private async open(name: string, bytes: ArrayBuffer): Promise<void> {
    const asked = ++this.asked;
    let about: About;
    try {
      about = await this.engine.open(name, bytes);
    } catch (error) {
      this.refuse(name, said(error));
      return;
    }
    if (asked !== this.asked) return;
    this.name = name;
    this.problem.hidden = true;
    this.searched.clear();
    this.controls.show(about);
    this.about.textContent = [name, parameters(about), plural(about.operators, "operator"), about.torch && `PyTorch ${about.torch}`].filter(Boolean).join(" · ");
    this.work.hidden = false;
    this.intro.hidden = true;
    await this.ask();
  }

  /** Says why a file was not opened. What was open stays. */
  private refuse(name: string, reason: string): void {
    this.problem.textContent = `${name}: ${reason}`;
    this.problem.hidden = false;
  }

  /** Asks when the controls rest. */
  private rest(): void {
    this.asked++;
    this.work.setAttribute("aria-busy", "true");
    clearTimeout(this.resting);
    this.resting = window.setTimeout(() => void this.ask(), REST);
  }

  private async ask(): Promise<void> {
    if (this.name === "") return;
    const asked = ++this.asked;
    const settings = this.controls.settings();
    const chosen = this.controls.batch?.value ?? null;
    this.work.setAttribute("aria-busy", "true");
    try {
      const answer = await this.engine.answer(settings);
      if (asked !== this.asked) return;
      const batches = chosen === null ? null : this.batchesUnder(settings);
      if (chosen !== null) batches?.add(chosen, figuresOf(chosen, answer));
      this.result.show(answer, commandLine(this.name, settings));
      this.result.showBatches(batches, chosen ?? 0, batches !== null);
      this.status.textContent = answer.summary;
      document.documentElement.dataset.took = this.engine.took.toFixed(1);
      this.work.removeAttribute("aria-busy");
      if (batches && chosen !== null) await this.search(batches, { ...settings }, chosen, asked);
    } catch (error) {
      if (asked !== this.asked) return;
      this.result.fail(said(error));
      this.work.removeAttribute("aria-busy");
    }
  }

  /** What is known of other batch sizes under the same settings. */
  private batchesUnder(settings: Settings): Batches {
    const key = JSON.stringify({ ...settings, batch: undefined });
    const known = this.searched.get(key) ?? new Batches();
    this.searched.set(key, known);
    return known;
  }

  /** Looks for the largest batch size that fits, as long as nothing else is asked for. */
  private async search(batches: Batches, settings: Settings, chosen: number, asked: number): Promise<void> {
    const begun = performance.now();
    for (let next = batches.next(); next !== null; next = batches.next()) {
      const batch = next;
      const figures = await this.engine.answer({ ...settings, batch }).then((answer) => figuresOf(batch, answer), () => null);
      if (asked !== this.asked) return;
      batches.add(batch, figures);
      this.result.showBatches(batches, chosen, true);
    }
    this.result.showBatches(batches, chosen, false);
    document.documentElement.dataset.searched = (performance.now() - begun).toFixed(0);
  }
}

/** How to come by a graph, until one is open. */
function introduction(): HTMLElement {
  const step = (title: string, ...text: (Node | string)[]): HTMLElement => h("li", {}, h("h3", {}, title), ...text);
  return h(
    "section",
    { class: "intro", aria: { label: "How it works" } },
    h("h2", {}, "Will the job fit on the card?"),
    h(
      "ol",
      {},
      step("Write the graph of the model", h("p", {}, "With its job, from the script:"), h("pre", {}, "xmem export -o model.pt2 -- python train.py"), h("p", {}, "or of a model alone, with PyTorch:"), h("pre", {}, "program = torch.export.export(model, inputs)\ntorch.export.save(program, \"model.pt2\")")),
      step("Open it here", h("p", {}, "The operators are followed one by one, as PyTorch would run them, and PyTorch's allocator is replayed. Weights are not read. No GPU is needed, and nothing leaves the browser: the page cannot reach the network.")),
      step("Choose card, batch and optimizer", h("p", {}, "The answer follows: whether the job fits, its peaks, what is alive at the peak, and the largest batch that fits.")),
    ),
  );
}

function said(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

void start();
