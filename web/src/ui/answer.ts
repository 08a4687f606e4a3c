// An answer in words: the verdict, the three figures with their range, and notes.

import type { Answer, Bounds, Place } from "../data/page";
import { code, h } from "./dom";
import { bounds as boundsText, bytes, count, percent, words } from "./format";

const DECISIONS: Record<string, string> = {
  fits: "Fits",
  tight: "Tight",
  does_not_fit: "Does not fit",
  no_verdict: "No verdict",
};

const DAMAGED: Record<string, string> = {
  damaged_fits: "Fits, by a damaged recording",
  damaged_does_not_fit: "Does not fit, by a damaged recording",
};

/** The name of the device; of one of which only the memory is known, that. */
export function deviceName({ device: { name, memory_bytes: memory } }: Answer): string {
  return name === "custom" ? `a device with ${bytes(memory)}` : name;
}

/** What is decided, in the words of the command line. */
export function decided({ verdict, decision }: { verdict: string; decision: string }): string {
  return DAMAGED[verdict] ?? DECISIONS[decision] ?? words(decision);
}

/** `iteration 1, backward` */
export function moment(place: Place): string {
  return place.iteration === null ? words(place.phase) : `iteration ${place.iteration}, ${words(place.phase)}`;
}

/** The verdict on the device, and where the peak is: `moment` says when that is, if it is known. */
export function verdict(answer: Answer, moment: string): HTMLElement {
  const place = answer.peak.at;
  const parts = [place?.module, place?.op, place?.line].filter((part): part is string => !!part);
  return h(
    "section",
    { class: "verdict", data: { decision: answer.decision }, aria: { label: "Verdict" } },
    h("p", { class: "word", id: "verdict" }, decided(answer)),
    h(
      "div",
      {},
      h("p", {}, `on ${device(answer)}`),
      h("p", { id: "summary" }, answer.summary),
      h("p", { class: "muted" }, headroom(answer)),
    ),
    place &&
      h(
        "div",
        { class: "place" },
        h("p", {}, moment === "" ? "Peak" : `Peak in ${moment}`),
        h("p", { class: "muted" }, parts.join(" · ")),
      ),
  );
}

function device({ device: { name, title, memory_bytes: memory } }: Answer): string {
  const text = title || name;
  return text.includes(bytes(memory)) ? text : `${text}, ${bytes(memory)}`;
}

function headroom(answer: Answer): string {
  const { need_bytes: need, ample_bytes: ample } = answer;
  if (need !== null && ample !== null && bytes(need) !== bytes(ample)) return `takes ${bytes(ample)} where there is room`;
  if (answer.headroom_bytes === null) return "";
  return `${bytes(answer.headroom_bytes)} stay free (${percent(answer.headroom_bytes, answer.device.memory_bytes)})`;
}

/** The three peaks with their ranges. */
export function figures(answer: Answer): HTMLElement {
  const { peak, range } = answer;
  const most = Math.max(range.device_bytes.high, peak.device_bytes, answer.device.memory_bytes);
  const figure = (id: string, name: string, source: string, value: number, { low, high }: Bounds): HTMLElement =>
    h(
      "section",
      { class: "card figure", id: `figure-${id}`, data: { bytes: value.toString() }, aria: { label: name } },
      h("h2", {}, name),
      h("p", { class: "value" }, bytes(value)),
      rangeBar(value, { low, high }, most, answer.device.memory_bytes),
      h("p", { class: "muted" }, low === high ? "no uncertainty" : boundsText(value, low, high)),
      h("p", { class: "muted source" }, source),
    );
  return h(
    "div",
    { class: "figures" },
    figure("allocated", "Peak allocated", "torch.cuda.max_memory_allocated()", peak.allocated_bytes, range.allocated_bytes),
    figure("reserved", "Peak reserved", "torch.cuda.max_memory_reserved()", peak.reserved_bytes, range.reserved_bytes),
    figure("device", "In nvidia-smi", `reserved + context of ${bytes(answer.device.context_bytes)}`, peak.device_bytes, range.device_bytes),
  );
}

/** Value and range on a bar as long as the device's memory, or as what does not fit into it. */
function rangeBar(value: number, bounds: Bounds, most: number, limit: number): HTMLElement {
  const bar = h("div", { class: "range", aria: { hidden: "true" } });
  const part = (name: string, from: number, to: number): void => {
    const element = h("i", { class: name });
    element.style.left = `${(100 * from) / most}%`;
    element.style.width = `${(100 * (to - from)) / most}%`;
    bar.append(element);
  };
  part("value", 0, Math.min(value, bounds.low));
  part("spread", Math.min(value, bounds.low), Math.max(value, bounds.high));
  if (bounds.low !== bounds.high) part("now", value, value);
  if (limit < most) part("limit", limit, limit);
  return bar;
}

/** What was odd or assumed. */
export function notes(answer: Answer): HTMLElement | null {
  if (answer.diagnostics.length === 0) return null;
  const list = h("ul", { class: "notes" });
  for (const note of answer.diagnostics) {
    list.append(h("li", { data: { severity: note.severity } }, h("b", {}, note.severity), " ", ...code(note.message), note.count > 1 ? h("span", { class: "muted" }, ` (${count(note.count)} times)`) : null));
  }
  return h("section", { class: "card wide", aria: { label: "Notes" } }, h("h2", {}, "Notes"), list);
}
