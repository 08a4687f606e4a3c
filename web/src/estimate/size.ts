// A size that a graph leaves open: a slider in equal proportions, and a number.

import { h } from "../ui/dom";
import { count } from "../ui/format";

/** The steps of a slider from one power of two to the next. */
const STEPS = 16;

export class Size {
  readonly root: HTMLElement;
  private readonly slider: HTMLInputElement;
  private readonly number: HTMLInputElement;
  private chosen: number;

  /** The slider goes to two to the power of `most`, or to twice the size that was exported. */
  constructor(
    id: string,
    label: string,
    exported: number,
    most: number,
    private readonly changed: () => void,
  ) {
    this.chosen = exported;
    const end = Math.max(most, Math.ceil(Math.log2(2 * exported)));
    this.slider = h("input", { id: `${id}-slider`, type: "range", min: 0, max: end * STEPS, step: 1, aria: { label: `${label}, slider` } });
    this.number = h("input", { id, type: "number", min: 1, max: 2 ** 31 - 1, step: 1 });
    this.slider.addEventListener("input", () => this.take(at(Number(this.slider.value)), this.slider));
    this.number.addEventListener("input", () => this.take(Number(this.number.value), this.number));
    this.number.addEventListener("change", () => this.show(null));
    this.root = h(
      "div",
      { class: "field size" },
      h("label", { for: id }, label, h("span", { class: "muted" }, ` (exported: ${count(exported)})`)),
      h("div", { class: "both-controls" }, this.slider, this.number),
    );
    this.show(null);
  }

  get value(): number {
    return this.chosen;
  }

  /** Chooses a size. */
  choose(value: number): void {
    this.take(value, null);
  }

  private take(value: number, by: HTMLInputElement | null): void {
    if (!Number.isInteger(value) || value < 1 || value > 2 ** 31 - 1 || value === this.chosen) return;
    this.chosen = value;
    this.show(by);
    this.changed();
  }

  /** Shows the size in the controls that did not choose it. */
  private show(by: HTMLInputElement | null): void {
    if (by !== this.slider) this.slider.value = Math.round(Math.log2(this.chosen) * STEPS).toString();
    if (by !== this.number) this.number.value = this.chosen.toString();
    this.slider.setAttribute("aria-valuetext", count(this.chosen));
  }
}

/** The size at a place of the slider. */
function at(place: number): number {
  return Math.max(1, Math.round(2 ** (place / STEPS)));
}
