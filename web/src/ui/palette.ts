// Colors of groups, told apart with any color vision: Paul Tol's muted scheme (Technical Note SRON/EPS/TN/09-002),
// with its dark hues lighter on dark backgrounds.

const LIGHT = ["#4b3f9e", "#cc6677", "#7cc3e8", "#ddcc77", "#44aa99", "#aa4499", "#999933", "#882255", "#2c7f4a", "#9a7fd1", "#e0975a"];
const DARK = ["#7a70d6", "#d97a88", "#7fbfe2", "#d9c978", "#4db3a2", "#bd5fae", "#a8a83f", "#b4507f", "#43a066", "#a891dc", "#e0a06a"];
const REST = ["#b9bcc2", "#6d7178"];

/** Where roles stand in the scheme. */
const ROLES: Record<string, number> = {
  parameter: 0,
  gradient: 1,
  optimizer_state: 2,
  activation: 3,
  input: 4,
  buffer: 5,
  temporary: 6,
  workspace: 7,
};

export type Theme = "light" | "dark";

let asked: Theme | null = null;

/** The theme in use: the reader's choice, or the system's. */
export function theme(): Theme {
  return asked ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

export function choose(wanted: Theme | null): void {
  asked = wanted;
  document.documentElement.setAttribute("data-theme", theme());
}

/** The color of the group with this number; those beyond the scheme share one. */
export function color(at: number): string {
  const scheme = theme() === "dark" ? DARK : LIGHT;
  return scheme[at] ?? rest();
}

export function roleColor(role: string): string {
  return role in ROLES ? color(ROLES[role]) : rest();
}

export const COLORS = LIGHT.length;

/** The color of what is in no group. */
export function rest(): string {
  return REST[theme() === "dark" ? 1 : 0];
}

/** A variable of the style sheet. */
export function variable(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function rgb(hex: string): [number, number, number] {
  const value = parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** Black or white, whichever is read more easily on a color. */
export function ink(hex: string): string {
  const [r, g, b] = rgb(hex).map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}
