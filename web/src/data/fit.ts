// What makes a job fit: the job as it is and with measures, and what each value of a number needs.

import type { DeviceMemory, FitFigures, FitHead, FitValues } from "./page";

/** Whether a variant of the job fits: `tight` only as cached memory is released for it. */
export type Fits = "yes" | "tight" | "no";

/** The job as it is, or with measures. */
export interface FitRow {
  /** The measures in words. */
  name: string;
  /** What they do, in a few words. */
  title: string;
  /** What they change in the numbers that the job computes; empty for the job as it is. */
  changes: string;
  kind: "base" | "single" | "combined";
  isSuggested: boolean;
  figures: FitFigures | null;
  /** The time of a step against that of the job as it is; none where it is not known. */
  factor: number | null;
  /** Where it was applied, or why there are no figures. */
  note: string;
}

/** What a measure may change, the least first. */
const CHANGES = ["nothing", "rounding", "training"];

export class Fit {
  /** The job as it is, then measures by what they need, those that do not help last. */
  readonly rows: FitRow[];
  /** The name of the job without measures: the command may not say the value of its number. */
  readonly plain: string;
  /** What the value that is looked for is called. */
  readonly best: string;

  constructor(readonly head: FitHead) {
    this.best = head.option?.is_fewest ? "fewest that fit" : "largest that fits";
    this.plain = head.option !== null && head.option.value === null ? "as recorded first" : "as it is";
    const base: FitRow = { name: this.plain, title: "", changes: "", kind: "base", isSuggested: false, figures: head.base, factor: 1, note: "" };
    const tried = head.tried.map((of): FitRow => {
      const parts = of.measures.map((row) => head.measures[row]);
      return {
        name: this.names(of.measures),
        title: parts.length === 1 ? parts[0].title : "",
        changes: CHANGES[Math.max(0, ...parts.map((part) => CHANGES.indexOf(part.changes)))],
        kind: parts.length === 1 ? "single" : "combined",
        isSuggested: head.suggestion?.measures.join() === of.measures.join(),
        figures: of.figures,
        factor: this.factor(of.figures),
        note: of.failed ?? (parts.length === 1 && parts[0].places ? `applied to ${parts[0].places}` : ""),
      };
    });
    const needs = (row: FitRow): number => row.figures?.needs_bytes ?? -1;
    tried.sort((a, b) => needs(b) - needs(a));
    const helps = (row: FitRow): boolean => row.figures !== null && needs(row) < head.base.needs_bytes;
    this.rows = [base, ...tried.filter(helps), ...tried.filter((row) => !helps(row))];
  }

  /** Measures in words; the job as it is without any. */
  names(measures: number[]): string {
    return measures.length === 0 ? this.plain : measures.map((row) => this.head.measures[row].name).join(" + ");
  }

  /** The values of a search in words: `as it is`, `with checkpointing`. */
  with({ measures }: FitValues): string {
    return measures.length === 0 ? this.plain : `with ${this.names(measures)}`;
  }

  private factor(figures: FitFigures | null): number | null {
    const own = this.head.base.step_ns;
    return figures === null || figures.step_ns === null || own === null || own <= 0 ? null : figures.step_ns / own;
  }

  /** Other devices with a memory up to `most`, those first that matter most; of nearly the same memory, the first. */
  others(most: number, apart: number, count: number): DeviceMemory[] {
    const shown = [this.head.device];
    for (const device of this.head.devices) {
      const isNear = shown.some((other) => other.name === device.name || Math.abs(other.memory_bytes - device.memory_bytes) < apart);
      if (device.memory_bytes <= most && !isNear && shown.length <= count) shown.push(device);
    }
    return shown.slice(1);
  }
}

export function fits({ fits, has_room: hasRoom }: FitFigures): Fits {
  return !fits ? "no" : hasRoom ? "yes" : "tight";
}

/** A factor of a step's time as a difference: `+17 %`. */
export function slower(factor: number | null): string {
  if (factor === null) return "";
  const percent = Math.round((factor - 1) * 100);
  return percent < 0 ? `−${-percent} %` : `+${percent} %`;
}
