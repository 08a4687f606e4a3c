// Figures as text.

const KIB = 1024;
const MIB = KIB * 1024;
const GIB = MIB * 1024;

/** Bytes as in xmem's text answers: `1.23 GiB`. */
export function bytes(value: number): string {
  const size = Math.abs(value);
  if (size >= GIB) return `${(value / GIB).toFixed(2)} GiB`;
  if (size >= MIB) return `${(value / MIB).toFixed(2)} MiB`;
  if (size >= KIB) return `${(value / KIB).toFixed(2)} KiB`;
  return `${value} B`;
}

/** A difference with its sign. */
export function signed(value: number): string {
  if (value === 0) return "±0";
  return value > 0 ? `+${bytes(value)}` : `−${bytes(-value)}`;
}

/** The bounds of a figure; what they differ by where both are written alike. */
export function bounds(value: number, low: number, high: number): string {
  const [least, most] = [bytes(low), bytes(high)];
  return least === most ? `${signed(low - value)} to ${signed(high - value)}` : `${least} to ${most}`;
}

export function count(value: number): string {
  return value.toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A difference of counts with its sign. */
export function signedCount(value: number): string {
  if (value === 0) return "±0";
  return value > 0 ? `+${count(value)}` : `−${count(-value)}`;
}

/** The number of a request. The first is 1. */
export function request(moment: number): string {
  return count(moment + 1);
}

/** A text that another one follows. */
export function commaAfter(text: string): string {
  return text === "" ? "" : `${text}, `;
}

/** A text that follows another one. */
export function commaBefore(text: string): string {
  return text === "" ? "" : `, ${text}`;
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function percent(part: number, whole: number): string {
  if (whole <= 0) return "–";
  const share = (100 * part) / whole;
  if (share > 0 && share < 1) return "<1 %";
  return `${Math.round(share)} %`;
}

/** Nanoseconds as a duration. */
export function duration(nanos: number): string {
  if (nanos === 0) return "0";
  if (nanos >= 1e9) return `${(nanos / 1e9).toFixed(3)} s`;
  if (nanos >= 1e6) return `${(nanos / 1e6).toFixed(3)} ms`;
  return `${(nanos / 1e3).toFixed(3)} µs`;
}

/** A duration with its sign. */
export function signedDuration(nanos: number): string {
  if (nanos === 0) return "±0";
  return nanos > 0 ? `+${duration(nanos)}` : `−${duration(-nanos)}`;
}

/** A Python line without its folders, others as they are: where there is little room. */
export function shortLine(name: string): string {
  return /\.py[(:]\d/.test(name) ? name.slice(name.lastIndexOf("/") + 1) : name;
}

/** A name from the data (`optimizer_state`) as words. */
export function words(name: string): string {
  return name.replace(/[_-]/g, " ");
}

/** Marks of an axis from 0 to `most` bytes: a power of two apart, `count` at most and the 0. */
export function ticks(most: number, count: number): number[] {
  const step = 2 ** Math.max(0, Math.ceil(Math.log2(most / count)));
  const marks = [];
  for (let mark = 0; mark <= most; mark += step) marks.push(mark);
  return marks;
}

/** A mark of an axis: `12 GiB`. */
export function tick(value: number): string {
  if (value === 0) return "0";
  const [unit, name] = value >= GIB ? [GIB, "GiB"] : value >= MIB ? [MIB, "MiB"] : value >= KIB ? [KIB, "KiB"] : [1, "B"];
  return `${Number((value / unit).toFixed(1))} ${name}`;
}
