// What views share: the run that is shown, the moment and the block that were chosen.

import type { Head } from "./data/page";
import type { Run } from "./data/run";
import { Maxima } from "./data/stack";

export type ViewName = "overview" | "timeline" | "allocator" | "peak" | "rules" | "plan" | "offload" | "fit" | "compare";

/** A view of the page. It is made when it is first opened. */
export interface View {
  readonly root: HTMLElement;
  /** Draws it anew: it was opened, or the size, the theme, the run or what is chosen has changed. */
  draw(): void;
  /** Handles a key; returns whether it was for the view. */
  key?(event: KeyboardEvent): boolean;
}

export class App {
  run: Run;
  /** The moment that Peak and Allocator show. */
  moment: number;
  /** They show the request after it, which the device cannot serve. */
  atFailure = false;
  /** The row of the chosen block. */
  block: number | null = null;
  /** Opens a view. */
  open: (view: ViewName) => void = () => undefined;
  /** Draws the view that is open. */
  redraw: () => void = () => undefined;
  /** Shows another run. */
  show: (run: Run) => void = (run) => this.choose(run);
  private readonly maximaOf = new Map<string, Maxima>();

  constructor(
    readonly head: Head,
    readonly runs: Run[],
  ) {
    this.run = runs[0];
    this.moment = this.run.peak;
  }

  choose(run: Run): void {
    this.run = run;
    this.goTo(run.peak);
    this.block = null;
  }

  goTo(moment: number, atFailure = false): void {
    this.moment = Math.max(0, Math.min(this.run.moments - 1, moment));
    this.atFailure = atFailure;
  }

  /** The highest values of a figure of a run. */
  maxima(figure: "allocated" | "reserved", run = this.run): Maxima {
    const name = `${this.runs.indexOf(run)} ${figure}`;
    let known = this.maximaOf.get(name);
    if (!known) this.maximaOf.set(name, (known = new Maxima(run[figure])));
    return known;
  }
}
