// The keys.

import { h } from "./dom";

const KEYS: [string, string][] = [
  ["/", "search in the timeline"],
  ["← →", "move"],
  ["+ −", "zoom in and out, as the mouse wheel does"],
  ["0", "show all"],
  ["p", "go to the peak"],
  [", .", "one event back, one further"],
  ["Enter", "choose the block of the event"],
  ["Esc", "let the chosen block go"],
  ["?", "these keys"],
];

export function help(views: string[]): HTMLDialogElement {
  const list = h("dl", { class: "facts" });
  views.forEach((view, at) => list.append(h("dt", {}, h("kbd", {}, (at + 1).toString())), h("dd", {}, view)));
  for (const [key, text] of KEYS) list.append(h("dt", {}, h("kbd", {}, key)), h("dd", {}, text));
  const close = h("button", {}, "Close");
  const dialog = h("dialog", { aria: { label: "Keys" } }, h("h2", {}, "Keys"), list, h("p", { class: "actions" }, close));
  close.addEventListener("click", () => dialog.close());
  return dialog;
}
