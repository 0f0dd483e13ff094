// Kinds differ by shape as well as by colour.

import { draw } from "./dom.js";

const corners = (count, turn) =>
  Array.from({ length: count }, (_, index) => {
    const angle = turn + (index * 2 * Math.PI) / count;
    return [Math.cos(angle), Math.sin(angle)];
  });
const UP = -Math.PI / 2;
const OUTLINES = {
  diamond: [corners(4, UP), 1.28],
  square: [corners(4, Math.PI / 4), 1.24],
  hexagon: [corners(6, 0), 1.1],
  triangle: [corners(3, UP), 1.38],
  pentagon: [corners(5, UP), 1.15],
  wedge: [corners(3, -UP), 1.38],
  star: [corners(10, UP).map(([x, y], index) => (index % 2 ? [x * 0.5, y * 0.5] : [x, y])), 1.4],
};

const SEEN = 2.2; // pixels of a radius, below which all shapes look alike

/** Add the outline of a shape to a path of a canvas; all shapes of one radius look equally large. */
export function trace(path, shape, x, y, radius) {
  const known = OUTLINES[shape];
  if (radius < SEEN) {
    path.rect(x - radius, y - radius, 2 * radius, 2 * radius);
    return;
  }
  if (!known) {
    path.moveTo(x + radius, y);
    path.arc(x, y, radius, 0, 2 * Math.PI);
    return;
  }
  const [points, scale] = known;
  points.forEach(([dx, dy], index) => {
    const put = index ? "lineTo" : "moveTo";
    path[put](x + dx * radius * scale, y + dy * radius * scale);
  });
  path.closePath();
}

/** A small sign of a kind, for the legend, lists and the panel. */
export function sign(look) {
  const [points, scale] = OUTLINES[look.shape] ?? [null, 1];
  const spots = points?.map(([x, y]) => `${(x * 5 * scale).toFixed(2)},${(y * 5 * scale).toFixed(2)}`);
  const drawn = spots ? draw("polygon", { points: spots.join(" ") }) : draw("circle", { r: 5 });
  return draw(
    "svg",
    { class: `sign k${look.colour}`, viewBox: "-8 -8 16 16", "aria-hidden": "true" },
    drawn,
  );
}
