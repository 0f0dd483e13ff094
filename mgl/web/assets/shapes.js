// Kinds are told apart by shape as well as by colour.

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

/** The outline of a shape about the origin; all shapes of one radius look equally large. */
function outline(shape, radius) {
  const known = OUTLINES[shape];
  if (!known) {
    return `M${-radius} 0a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0z`;
  }
  const [points, scale] = known;
  const at = ([x, y]) => `${(x * radius * scale).toFixed(2)} ${(y * radius * scale).toFixed(2)}`;
  return `M${points.map(at).join("L")}z`;
}

/** A small sign of a kind, for the legend, lists and the panel. */
function sign(look) {
  return draw(
    "svg",
    { class: `sign k${look.colour}`, viewBox: "-8 -8 16 16", "aria-hidden": "true" },
    draw("path", { d: outline(look.shape, 5) }),
  );
}

const several = (noun) => (noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`);
const many = (count, noun) => `${count} ${count === 1 ? noun : several(noun)}`;

const shorten = (text, length) => {
  const signs = [...text.replace(/\s+/g, " ").trim()];
  return signs.length > length ? signs.slice(0, length - 1).join("") + "…" : signs.join("");
};
