// Names are set where they cover no node and no other name; what matters most comes first.

import { at, camera, middle, size, stage } from "./camera.js";
import { shorten } from "./dom.js";
import { byWeight, matches, relation, shown, state } from "./state.js";

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const LABEL = 30;
const MOST = 400; // names that are tried for, the weightiest first
const CELL = 40;
const ruler = document.createElement("canvas").getContext("2d");
ruler.font = FONT;

const overlap = (one, other) =>
  one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3];

/** The boxes that are taken, found by the cells that they touch. */
class Taken {
  cells = new Map();

  #keys([left, top, right, bottom]) {
    const keys = [];
    for (let x = Math.floor(left / CELL); x <= right / CELL; x++) {
      for (let y = Math.floor(top / CELL); y <= bottom / CELL; y++) keys.push(x * 100003 + y);
    }
    return keys;
  }

  add(box) {
    for (const key of this.#keys(box)) {
      if (this.cells.has(key)) this.cells.get(key).push(box);
      else this.cells.set(key, [box]);
    }
  }

  isFree(box) {
    for (const key of this.#keys(box)) {
      for (const other of this.cells.get(key) ?? []) if (overlap(box, other)) return false;
    }
    return true;
  }

  under(box) {
    const found = new Set();
    for (const key of this.#keys(box)) {
      for (const other of this.cells.get(key) ?? []) if (overlap(box, other)) found.add(other);
    }
    return [...found];
  }
}

/** Choose the names that are drawn, and their places. */
export function placeNames(nodes, edges, near) {
  const scale = size();
  const focus = new Set([state.hovered, state.selected]);
  const disc = (node) => {
    const [x, y] = at(node);
    const half = node.radius * scale;
    return [x - half, y - half, x + half, y + half];
  };
  const rank = (node) =>
    (focus.has(node) ? 4 : 0) + (near.has(node) ? 2 : 0) + (state.cited.has(node) ? 1 : 0);
  const taken = new Taken();
  const named = [];
  const put = (name) => {
    if (!name) return;
    name.box.name = true;
    taken.add(name.box);
    named.push(name);
  };
  for (const node of nodes) if (!near.size || near.has(node)) taken.add(disc(node));
  const order = nodes.filter((node) => matches(node) || focus.has(node));
  order.sort((one, other) => rank(other) - rank(one) || byWeight(one, other));
  const first = order.filter((node) => rank(node) > 1).slice(0, MOST);
  first.forEach((node) => put(placeName(node, scale, focus.has(node), taken)));
  for (const edge of edges) if (near.has(edge)) put(placeRelation(edge, focus.has(edge), taken));
  if (near.size) for (const node of nodes) if (!near.has(node)) taken.add(disc(node));
  const rest = order.filter((node) => rank(node) <= 1).slice(0, MOST);
  rest.forEach((node) => put(placeName(node, scale, false, taken)));
  return named;
}

function measure(node) {
  node.name ??= shorten(node.label, LABEL);
  node.width ??= ruler.measureText(node.name).width;
  return node.width;
}

function placeName(node, scale, always, taken) {
  const [x, y] = at(node);
  const gap = node.radius * scale + (state.cited.has(node) ? 8 : 5);
  const [wide, high] = [measure(node), 13];
  const slant = gap * 0.75;
  const spots = [
    ["center", x, y + gap + 9, [x - wide / 2, y + gap, x + wide / 2, y + gap + high]],
    ["start", x + gap, y + 4, [x + gap, y - high / 2, x + gap + wide, y + high / 2]],
    ["end", x - gap, y + 4, [x - gap - wide, y - high / 2, x - gap, y + high / 2]],
    ["center", x, y - gap - 2, [x - wide / 2, y - gap - high, x + wide / 2, y - gap]],
    ["start", x + slant, y + slant + 8, [x + slant, y + slant - 3, x + slant + wide, y + slant + high - 3]],
    ["start", x + slant, y - slant, [x + slant, y - slant - 10, x + slant + wide, y - slant + 3]],
    ["end", x - slant, y + slant + 8, [x - slant - wide, y + slant - 3, x - slant, y + slant + high - 3]],
    ["end", x - slant, y - slant, [x - slant - wide, y - slant - 10, x - slant, y - slant + 3]],
  ];
  const inside = ([, , , [left, , right]]) =>
    left + camera.x > 2 && right + camera.x < stage.clientWidth - 2;
  const fitting = spots.filter(inside);
  const spot =
    fitting.find(([, , , box]) => taken.isFree(box)) ??
    (node.radius > 11.5 ? leastCovering(fitting, taken) : null) ??
    (always ? (fitting[0] ?? spots[0]) : null);
  if (!spot) return null;
  const [align, textX, textY, box] = spot;
  return { element: node, text: node.name, align, x: textX, y: textY, box };
}

/** The spot that covers the fewest nodes, and no name, if there is one. */
function leastCovering(spots, taken) {
  const counted = spots.map((spot) => [spot, taken.under(spot[3])]);
  const legible = counted.filter(([, covered]) => !covered.some((box) => box.name));
  return legible.sort(([, one], [, other]) => one.length - other.length)[0]?.[0];
}

/** Relations are named at the element in hand: all that fit, its own in any case. */
function placeRelation(edge, always, taken) {
  if (!shown(edge) || (edge.member && !always)) return null;
  const [x, y] = middle(edge);
  const text = shorten(relation(edge), 40);
  const half = ruler.measureText(text).width / 2;
  const box = [x - half, y - 7, x + half, y + 7];
  if (!always && !taken.isFree(box)) return null;
  return { element: edge, text, align: "center", x, y: y + 4, box };
}

export function drawNames(pen, named, colours, faint) {
  pen.lineWidth = 3.5;
  pen.lineJoin = "round";
  pen.strokeStyle = colours.sheet;
  for (const { element, text, align, x, y } of named) {
    pen.font = element.node ? FONT : `italic ${FONT}`;
    pen.textAlign = align === "center" ? "center" : align === "start" ? "left" : "right";
    pen.globalAlpha = element.node && faint(element) ? 0.38 : 1;
    pen.fillStyle = element.node ? colours.ink : colours.quiet;
    pen.strokeText(text, x, y);
    pen.fillText(text, x, y);
  }
  pen.globalAlpha = 1;
}
