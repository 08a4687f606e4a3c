// Canvases in the size of their place on the page.

import { h } from "../ui/dom";

/** A canvas whose pixels are those of the screen, and what draws on it. Where a browser has none, nothing is drawn, and
 * the tables have the figures. */
export class Surface {
  readonly canvas: HTMLCanvasElement;
  private readonly known: CanvasRenderingContext2D | null;
  width = 0;
  height = 0;
  ratio = 1;

  constructor(label: string | null) {
    this.canvas = h("canvas", label ? { role: "img", aria: { label } } : { aria: { hidden: "true" } });
    this.known = this.canvas.getContext("2d");
  }

  /** For those whom `fit` has told that there is something to draw on. */
  get context(): CanvasRenderingContext2D {
    if (!this.known) throw new Error("this browser has no canvas");
    return this.known;
  }

  /** Takes the size of the element around it; returns whether there is anything to draw on. */
  fit(): boolean {
    const box = this.canvas.getBoundingClientRect();
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    this.width = Math.round(box.width);
    this.height = Math.round(box.height);
    const [width, height] = [Math.round(this.width * this.ratio), Math.round(this.height * this.ratio)];
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    return this.known !== null && width > 0 && height > 0;
  }

  /** Clears it, and counts in pixels of the page from now on. */
  clear(): CanvasRenderingContext2D {
    this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.context.clearRect(0, 0, this.width, this.height);
    return this.context;
  }
}

/** Draws once a frame, however often it is asked to. */
export function onFrame(draw: () => void): () => void {
  return () => {
    if (waiting.size === 0) requestAnimationFrame(drawNow);
    waiting.add(draw);
  };
}

const waiting = new Set<() => void>();

/** Draws at once what waits for the next frame: paper does not wait. */
export function drawNow(): void {
  const all = [...waiting];
  waiting.clear();
  for (const draw of all) draw();
}

/** A polyline of steps: a value for each column of a plot; NaN leaves a gap. */
export function steps(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  most: number,
  value: (x: number) => number,
): void {
  context.beginPath();
  let last = NaN;
  for (let x = 0; x < width; x++) {
    const y = height - (value(x) / most) * height;
    if (Number.isNaN(last)) context.moveTo(x, y);
    else if (Number.isNaN(y)) context.lineTo(x, last);
    else if (y !== last) {
      context.lineTo(x, last);
      context.lineTo(x, y);
    }
    last = y;
  }
  if (!Number.isNaN(last)) context.lineTo(width, last);
  context.stroke();
}
