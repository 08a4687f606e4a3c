// Elements. Text goes in as text nodes only, so that no name in a trace can become markup.

type Child = Node | string | null | false | undefined;

interface Properties {
  class?: string;
  id?: string;
  title?: string;
  href?: string;
  type?: string;
  for?: string;
  role?: string;
  hidden?: boolean;
  tabindex?: number;
  colspan?: number;
  scope?: string;
  value?: string;
  min?: string | number;
  max?: string | number;
  step?: string | number;
  placeholder?: string;
  disabled?: boolean;
  data?: Record<string, string>;
  aria?: Record<string, string>;
  on?: { [name in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[name]) => void };
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener as EventListener);
    } else if (name === "aria" || name === "data") {
      for (const [key, text] of Object.entries(value)) element.setAttribute(`${name}-${key}`, clipped(text as string));
    } else {
      element.setAttribute(name, value === true ? "" : clipped(String(value)));
    }
  }
  append(element, children);
  return element;
}

export function append(parent: Element, children: Child[]): void {
  for (const child of children) if (child) parent.append(typeof child === "string" ? clipped(child) : child);
}

/** The longest text that is shown: a name in a recording may have any length. */
const MAX_TEXT = 2000;

export function clipped(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}…`;
}

/** A text in which what stands between backticks is code. */
export function code(text: string): Child[] {
  return text.split("`").map((part, at) => (at % 2 === 1 ? h("code", {}, part) : part));
}

/** A path that may break after its slashes and before its parentheses. */
export function breakable(text: string): Child[] {
  return text.split(/(?<=\/)|(?=\()/).flatMap((part, at) => (at === 0 ? [part] : [h("wbr"), part]));
}

export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

/** A row of choices of which one is taken, as radio buttons. */
export function choice<T extends string>(
  label: string,
  options: readonly (readonly [T, string])[],
  initial: T,
  chosen: (value: T) => void,
): HTMLElement {
  const name = `choice-${++numbered}`;
  const group = h("fieldset", { class: "choice" }, h("legend", {}, label));
  for (const [value, text] of options) {
    const input = h("input", { type: "radio", value });
    input.name = name;
    input.checked = value === initial;
    input.addEventListener("change", () => input.checked && chosen(value));
    group.append(h("label", {}, input, h("span", {}, text)));
  }
  return group;
}

let numbered = 0;

/** A number for ids that occur once in the page. */
export function unique(prefix: string): string {
  return `${prefix}-${++numbered}`;
}

/** A table whose numeric columns stand right, in a region that scrolls where the page is narrow. Cells are texts or
 * elements. */
export function table(
  caption: string,
  columns: readonly { title: string; numeric?: boolean }[],
  rows: readonly (readonly Child[])[],
): HTMLElement {
  const kind = (at: number): string | undefined => (columns[at].numeric ? "number" : undefined);
  const head = h("tr", {}, ...columns.map((column, at) => h("th", { scope: "col", class: kind(at) }, column.title)));
  const body = h("tbody");
  for (const row of rows) body.append(h("tr", {}, ...row.map((cell, at) => h("td", { class: kind(at) }, cell))));
  return scrolled(caption, h("table", {}, h("caption", {}, caption), h("thead", {}, head), body));
}

/** A region around a table. */
export function scrolled(label: string, table: HTMLTableElement): HTMLElement {
  return h("div", { class: "scroll", tabindex: 0, role: "region", aria: { label } }, table);
}

/** A file from text, offered for download. */
export function download(name: string, type: string, text: string): void {
  const link = h("a", { href: URL.createObjectURL(new Blob([text], { type })) });
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
