// Squarified treemaps (Bruls, Huizing, van Wijk, "Squarified Treemaps", 2000).

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The boxes of values, which are positive and in falling order, within a box. */
export function squarified(values: number[], within: Box): Box[] {
  const total = values.reduce((sum, value) => sum + value, 0);
  const boxes: Box[] = [];
  if (total <= 0) return values.map(() => ({ ...within, width: 0, height: 0 }));
  const scale = (within.width * within.height) / total;
  const left = { ...within };
  let at = 0;
  while (at < values.length) {
    const side = Math.min(left.width, left.height);
    let end = at + 1;
    let area = values[at] * scale;
    let worst = ratio(area, values[at] * scale, values[at] * scale, side);
    while (end < values.length) {
      const next = area + values[end] * scale;
      const nextWorst = ratio(next, values[at] * scale, values[end] * scale, side);
      if (nextWorst > worst) break;
      area = next;
      worst = nextWorst;
      end++;
    }
    const thickness = side > 0 ? area / side : 0;
    const isColumn = left.width >= left.height;
    let along = 0;
    for (; at < end; at++) {
      const length = thickness > 0 ? (values[at] * scale) / thickness : 0;
      boxes.push(
        isColumn
          ? { x: left.x, y: left.y + along, width: thickness, height: length }
          : { x: left.x + along, y: left.y, width: length, height: thickness },
      );
      along += length;
    }
    if (isColumn) {
      left.x += thickness;
      left.width -= thickness;
    } else {
      left.y += thickness;
      left.height -= thickness;
    }
  }
  return boxes;
}

function ratio(area: number, largest: number, smallest: number, side: number): number {
  const square = area * area;
  return Math.max((side * side * largest) / square, square / (side * side * smallest));
}
