// The controls: what the job is, and on which card.

import { h, replace, unique } from "../ui/dom";
import { bytes, count, plural } from "../ui/format";
import type { About, Catalog, Device, Settings } from "./messages";
import { Size } from "./size";

/** The card that is chosen at first. */
const FIRST = "a100-40g";

/** Options of optimizers that change memory, for those classes that have them. */
const OPTIONS: Record<string, string[]> = {
  sgd: ["momentum"],
  rmsprop: ["momentum", "centered"],
  adam: ["amsgrad"],
  adamw: ["amsgrad"],
};

const IMPLEMENTATIONS: [string, string][] = [
  ["", "as PyTorch chooses"],
  ["foreach", "foreach"],
  ["fused", "fused"],
  ["for-loop", "for-loop"],
];

const TYPES = ["float32", "bfloat16", "float16"];

export class Controls {
  readonly root = h("form", { class: "card settings", aria: { label: "Job and card" } });
  private readonly device: HTMLSelectElement;
  private job: JobControls | null = null;

  constructor(
    private readonly catalog: Catalog,
    private readonly changed: () => void,
  ) {
    this.device = h("select", { id: "device" });
    for (const [label, devices] of grouped(catalog)) {
      const options = devices.map((device) => h("option", { value: device.name }, `${device.name}: ${device.title || device.name}, ${bytes(device.memory_bytes)}`));
      this.device.append(h("optgroup", { aria: { label } }, ...options));
      (this.device.lastElementChild as HTMLOptGroupElement).label = label;
    }
    this.device.value = FIRST;
    this.device.addEventListener("change", changed);
    this.root.addEventListener("submit", (event) => event.preventDefault());
  }

  /** Shows the controls of a graph. */
  show(about: About): void {
    this.job = new JobControls(this.catalog, about, this.changed);
    replace(this.root, h("h2", {}, "Job and card"), field("Card", this.device), ...this.job.fields);
    this.job.adapt();
  }

  settings(): Settings {
    return { device: this.device.value, ...this.job?.settings() };
  }

  /** The batch size, if the graph leaves it open. */
  get batch(): Size | null {
    return this.job?.batch ?? null;
  }
}

/** The controls of one graph. */
class JobControls {
  readonly fields: (HTMLElement | null)[];
  readonly batch: Size | null;
  private readonly length: Size | null;
  private readonly purpose: HTMLSelectElement;
  private readonly optimizer: HTMLSelectElement;
  private readonly implementation: HTMLSelectElement;
  private readonly loss: HTMLSelectElement;
  private readonly autocast: HTMLSelectElement;
  private readonly dtype: HTMLSelectElement;
  private readonly checkpoints: HTMLInputElement;
  private readonly accumulation: HTMLInputElement;
  private readonly training: HTMLElement;

  constructor(
    catalog: Catalog,
    private readonly about: About,
    changed: () => void,
  ) {
    const { job } = about;
    const change = (): void => {
      this.adapt();
      changed();
    };
    this.purpose = select("purpose", [["training", "Training"], ["inference", "Inference"]], change);
    this.purpose.value = job?.training === false ? "inference" : "training";
    this.batch = about.batch === null ? null : new Size("batch", "Batch size", about.batch, 12, changed);
    this.length = about.length === null ? null : new Size("length", "Length of sequences", about.length, 16, changed);
    const noted = job && job.optimizers.length > 0 ? [["", `as exported (${job.optimizers.join(", ")})`] as [string, string]] : [];
    this.optimizer = select("optimizer", [...noted, ...optimizers(catalog)], change);
    if (noted.length === 0) this.optimizer.value = "adamw";
    this.implementation = select("implementation", IMPLEMENTATIONS, change);
    this.loss = select("loss", [["", "the graph ends in a loss"], ...catalog.losses.map((loss): [string, string] => [loss, loss.replace("-", " ")])], change);
    const asExported = job?.autocast ? `as exported (${job.autocast})` : "off";
    this.autocast = select("autocast", [["", asExported], ...(job?.autocast ? [["off", "off"] as [string, string]] : []), ["bfloat16", "bfloat16"], ["float16", "float16"]], change);
    this.dtype = select("dtype", [["", "as exported"], ...TYPES.map((type): [string, string] => [type, type])], change);
    this.checkpoints = h("input", { id: "checkpoints", type: "text", placeholder: job?.checkpoints.length ? `as exported (${job.checkpoints.join(", ")})` : "none" });
    this.checkpoints.autocomplete = "off";
    this.checkpoints.spellcheck = false;
    this.checkpoints.addEventListener("change", change);
    this.accumulation = h("input", { id: "accumulation", type: "number", min: 1, max: 4096, step: 1, placeholder: "as exported" });
    this.accumulation.addEventListener("change", change);
    this.training = h(
      "div",
      { class: "part" },
      field("Optimizer", this.optimizer),
      field("Implementation", this.implementation),
      job ? null : field("Loss", this.loss),
      field("Recompute activations of", this.checkpoints, about.repeated.length > 0 && this.suggestions()),
      field("Passes for each step", this.accumulation),
    );
    this.fields = [
      this.batch?.root ?? fixed("Batch size"),
      this.length?.root ?? null,
      field("Use", this.purpose),
      this.training,
      field("Autocast", this.autocast),
      field("Type of parameters", this.dtype),
    ];
  }

  /** Shows what goes with what is chosen. */
  adapt(): void {
    this.training.hidden = this.purpose.value === "inference";
    this.implementation.disabled = this.optimizer.value === "";
  }

  settings(): Omit<Settings, "device"> {
    const { about } = this;
    const isTraining = this.purpose.value === "training";
    const settings: Omit<Settings, "device"> = {};
    if (about.job?.training !== isTraining) settings.training = isTraining;
    if (isTraining) {
      if (this.optimizer.value !== "") settings.optimizer = [this.optimizer.value, this.implementation.value].filter((part) => part !== "").join(":");
      if (this.loss.value !== "") settings.loss = this.loss.value;
      const passes = Number(this.accumulation.value);
      if (Number.isInteger(passes) && passes >= 1) settings.accumulation = passes;
      const modules = this.checkpoints.value.split(/[,\s]+/).filter((module) => module !== "");
      if (modules.length > 0) settings.checkpoints = modules;
    }
    if (this.autocast.value !== "") settings.autocast = this.autocast.value;
    if (this.dtype.value !== "") settings.dtype = this.dtype.value;
    if (this.batch && this.batch.value !== about.batch) settings.batch = this.batch.value;
    if (this.length && this.length.value !== about.length) settings.length = this.length.value;
    return settings;
  }

  /** Lists of modules, as buttons that take them or leave them. */
  private suggestions(): HTMLElement {
    const shown = this.about.repeated.filter(({ count }) => count > 2).slice(0, 4);
    const buttons = shown.map(({ pattern, count: modules }) => {
      const take = (): void => {
        this.checkpoints.value = this.checkpoints.value === pattern ? "" : pattern;
        this.checkpoints.dispatchEvent(new Event("change"));
      };
      return h("button", { type: "button", class: "link", title: plural(modules, "module"), on: { click: take } }, pattern);
    });
    return h("span", { class: "suggestions" }, ...buttons);
  }
}

/** Whole cards by memory, what shares the memory of its host, and parts of cards. */
function grouped({ known: { devices }, slices }: Catalog): [string, Device[]][] {
  const isSlice = (device: Device): boolean => slices.includes(device.name);
  const cards = devices.filter((device) => !isSlice(device) && !device.shares_host_memory);
  const groups: [string, Device[]][] = [
    ["Cards", cards.sort((a, b) => a.memory_bytes - b.memory_bytes || a.name.localeCompare(b.name))],
    ["With the host's memory", devices.filter((device) => device.shares_host_memory)],
    ["MIG slices", devices.filter(isSlice)],
  ];
  return groups.filter(([, list]) => list.length > 0);
}

/** Classes, each also with the options that change memory. */
function optimizers({ optimizers: classes }: Catalog): [string, string][] {
  return classes.flatMap(({ name, class: title }) => [
    [name, title] as [string, string],
    ...(OPTIONS[name] ?? []).map((option): [string, string] => [`${name}:${option}`, `${title}, ${option}`]),
  ]);
}

function select(id: string, options: [string, string][], changed: () => void): HTMLSelectElement {
  const element = h("select", { id }, ...options.map(([value, text]) => h("option", { value }, text)));
  element.addEventListener("change", changed);
  return element;
}

/** A control with its label; what belongs to it stands below. */
function field(label: string, control: HTMLElement, below: HTMLElement | null | false = null): HTMLElement {
  control.id ||= unique("control");
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, below);
}

function fixed(label: string): HTMLElement {
  return h("div", { class: "field" }, h("span", {}, label), h("span", { class: "fixed" }, "fixed in the graph"));
}

/** Elements of parameters in words. */
export function parameters({ parameters: elements }: About): string {
  if (elements >= 1e9) return `${(elements / 1e9).toFixed(2)} billion parameters`;
  if (elements >= 1e6) return `${(elements / 1e6).toFixed(1)} million parameters`;
  return `${count(elements)} parameters`;
}
