// The graph on a canvas: places come with the data; zooming moves nodes apart and leaves their names
// readable. What is far away is drawn more simply, so that ten thousand nodes move as ten do.

import { enclose } from "./areas.js";
import { at, camera, canvas, curve, edgesInSight, fit, isLarge, middle, nodesInSight, reach, reveal, size, stage } from "./camera.js";
import { byId } from "./dom.js";
import { drawNames, placeNames } from "./names.js";
import { trace } from "./shapes.js";
import { around, data, drawable, fresh, hyperedges, isBundle, isDrawn, matches, onChange, onNews, shown, state, tied } from "./state.js";

const pen = canvas.getContext("2d");
const CURVES = 3000; // edges beyond which they are straight lines without heads
const REST = 150; // milliseconds without a move, after which a large graph is drawn anew

/** The colours of the style sheet, as they are now. */
let colours = {};
const dark = matchMedia("(prefers-color-scheme: dark)");
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["sheet", "raised", "ink", "quiet", "edge", "edge-on", "cited", "focus", "dim"];
  for (let index = 0; index < 8; index++) names.push(`k${index}`);
  colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  colours.dim = Number(colours.dim);
}
dark.addEventListener("change", () => {
  readColours();
  keptAt = null;
  redraw();
});

/** A colour between two of the form #rrggbb. */
function mix(one, other, part) {
  const channel = (colour, place) => Number.parseInt(colour.slice(1 + 2 * place, 3 + 2 * place), 16);
  const mixed = [0, 1, 2].map((at) => Math.round(channel(one, at) * part + channel(other, at) * (1 - part)));
  return `rgb(${mixed.join(" ")})`;
}

/** Edges between the same two nodes are bent apart; a lone edge is straight. */
function bend() {
  const pairs = new Map();
  for (const edge of data.edges) {
    const key = edge.source < edge.target ? `${edge.source} ${edge.target}` : `${edge.target} ${edge.source}`;
    if (!pairs.has(key)) pairs.set(key, []);
    pairs.get(key).push(edge);
  }
  for (const edges of pairs.values()) {
    edges.forEach((edge, index) => {
      const bent = (index - (edges.length - 1) / 2) * 34;
      edge.bend = edge.source < edge.target ? bent : -bent;
      edge.turn = index;
      edge.group = edges;
    });
  }
}

export function buildGraph() {
  readColours();
  bend();
  if (stage.clientHeight > stage.clientWidth) {
    for (const node of drawable) [node.x, node.y] = [node.y, node.x];
  }
  hyperedges.forEach((node, index) => (node.margin = 15 + 4 * (index % 4)));
  hyperedges.sort((one, other) => other.degree - one.degree);
  byId("empty").hidden = drawable.length > 0;
}

onNews(() => {
  buildGraph();
  keptAt = null;
  if (camera.fitted) fit();
});

export function zoomBy(factor, x = stage.clientWidth / 2, y = stage.clientHeight / 2) {
  const zoom = Math.max(0.02, Math.min(8, camera.zoom * factor));
  camera.x = x - ((x - camera.x) * zoom) / camera.zoom;
  camera.y = y - ((y - camera.y) * zoom) / camera.zoom;
  camera.zoom = zoom;
  camera.fitted = false;
  redraw();
}

function traceEdge(path, edge, simple) {
  const [ax, ay] = at(edge.from);
  if (simple) {
    path.moveTo(ax, ay);
    path.lineTo(...at(edge.to));
    return;
  }
  if (edge.from === edge.to) {
    const [far, top] = [reach(edge), edge.from.radius * size()];
    path.moveTo(ax - 4, ay - top);
    path.bezierCurveTo(ax - far, ay - 2 * far, ax + far, ay - 2 * far, ax + 4, ay - top - 2);
    return;
  }
  const [start, handle, end] = curve(edge);
  path.moveTo(...start);
  path.quadraticCurveTo(...handle, ...end);
}

function traceHead(path, edge) {
  const loop = edge.from === edge.to;
  const [ax, ay] = at(edge.from);
  const end = loop ? [ax + 4, ay - edge.from.radius * size() - 2] : curve(edge)[2];
  const from = loop ? [ax + reach(edge) / 2, ay - reach(edge)] : curve(edge)[1];
  const angle = Math.atan2(end[1] - from[1], end[0] - from[0]);
  path.moveTo(...end);
  for (const side of [-0.42, 0.42]) {
    path.lineTo(end[0] - 8 * Math.cos(angle + side), end[1] - 8 * Math.sin(angle + side));
  }
  path.closePath();
}

let isDue = false;
export function redraw() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    paint();
  });
}

export function paint() {
  const ratio = devicePixelRatio;
  const [wide, high] = [Math.round(stage.clientWidth * ratio), Math.round(stage.clientHeight * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    [canvas.width, canvas.height] = [wide, high];
    keptAt = null;
  }
  const hand = state.hovered || state.selected;
  const near = around(hand);
  if (isLarge()) paintLarge(hand, near);
  else paintAll(near, (each) => Boolean(hand && !near.has(each)) || !matches(each));
}

function clear() {
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.clearRect(0, 0, canvas.width, canvas.height);
}

function aim() {
  const ratio = devicePixelRatio;
  pen.setTransform(ratio, 0, 0, ratio, camera.x * ratio, camera.y * ratio);
}

function paintAll(near, faint) {
  clear();
  aim();
  const [nodes, edges] = [nodesInSight(), edgesInSight()];
  hyperedges.filter(shown).forEach((node) => paintArea(node, faint(node)));
  paintEdges(edges, near, faint);
  paintNodes(nodes, faint);
  drawNames(pen, placeNames(nodes, edges, near), colours, faint);
}

const kept = document.createElement("canvas");
const far = byId("far");
let keptAt = null;
let farAt = null;
let rest = null;

/** Put the kept picture where the camera is; what is in hand and beside it is a layer of its own. */
function paintLarge(hand, near) {
  if (!keptAt) {
    paintAll(new Set(), (each) => !matches(each));
    [kept.width, kept.height] = [canvas.width, canvas.height];
    kept.getContext("2d").drawImage(canvas, 0, 0);
    keptAt = { ...camera };
    farAt = null;
  }
  clear();
  if (!isAt(farAt)) {
    const grown = camera.zoom / keptAt.zoom;
    const place = (now, then) => (now - then * grown) * devicePixelRatio;
    [far.width, far.height] = [canvas.width, canvas.height];
    far.getContext("2d").drawImage(kept, place(camera.x, keptAt.x), place(camera.y, keptAt.y), kept.width * grown, kept.height * grown);
    farAt = { ...camera };
  }
  far.classList.toggle("dim", Boolean(hand));
  if (hand) {
    aim();
    const nodes = [...near].filter((each) => each.node && !each.layer && shown(each));
    const edges = [...near].filter((each) => !each.node && isDrawn(each));
    const bright = () => false;
    paintEdges(edges, near, bright);
    paintNodes(nodes, bright);
    drawNames(pen, placeNames(nodes, edges, near), colours, bright);
  }
  clearTimeout(rest);
  if (isAt(keptAt)) return;
  rest = setTimeout(() => {
    keptAt = null;
    redraw();
  }, REST);
}

const isAt = (place) => ["x", "y", "zoom"].every((name) => camera[name] === place?.[name]);

function paintArea(node, faint) {
  const inside = [node, ...tied(node)];
  const margin = Math.max(...inside.map((each) => each.radius)) * size() + node.margin;
  const path = enclose(inside.map(at), margin);
  const colour = colours[`k${node.look.colour}`];
  const on = state.selected === node || state.hovered === node;
  pen.globalAlpha = (faint ? colours.dim : 1) * (on ? 0.24 : 0.12);
  pen.fillStyle = pen.strokeStyle = colour;
  pen.fill(path);
  pen.globalAlpha = (faint ? colours.dim : 1) * (on ? 1 : 0.5);
  pen.lineWidth = state.selected === node ? 2.2 : 1.2;
  pen.setLineDash(fresh(node) ? [5, 4] : []);
  pen.stroke(path);
  pen.setLineDash([]);
  pen.globalAlpha = 1;
  node.area = path;
}

/** Edges that look alike are one path. */
function paintEdges(edges, near, faint) {
  const simple = edges.length > CURVES;
  const groups = new Map();
  for (const edge of edges) {
    const on = state.selected === edge || state.hovered === edge;
    const look = on ? "on" : faint(edge) ? "faint" : near.has(edge) || fresh(edge) ? "near" : edge.member ? "member" : "plain";
    if (!groups.has(look)) groups.set(look, []);
    groups.get(look).push(edge);
  }
  for (const look of ["faint", "member", "plain", "near", "on"]) {
    const group = groups.get(look);
    if (!group) continue;
    const [lines, bundles, heads] = [new Path2D(), new Path2D(), new Path2D()];
    const isPlain = simple && !["near", "on"].includes(look);
    for (const edge of group) {
      traceEdge(isBundle(edge) ? bundles : lines, edge, isPlain);
      if (!isPlain && !edge.member) traceHead(heads, edge);
    }
    pen.strokeStyle = pen.fillStyle = colours[["near", "on"].includes(look) ? "edge-on" : "edge"];
    pen.globalAlpha = (look === "faint" ? colours.dim : look === "member" ? 0.55 : 1) * (isPlain ? 0.4 : 1);
    pen.lineWidth = look === "on" ? 2.6 : isPlain ? 0.6 : 1;
    pen.stroke(lines);
    pen.lineWidth *= 3;
    pen.stroke(bundles);
    pen.fill(heads);
  }
  pen.globalAlpha = 1;
}

/** Nodes of a kind that look alike are one path. */
function paintNodes(nodes, faint) {
  const scale = size();
  const groups = new Map();
  for (const node of nodes) {
    const full = fresh(node) || node === state.hovered || node === state.selected;
    const key = `${faint(node) ? 0 : full ? 2 : 1} ${node.kind}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(node);
  }
  for (const key of [...groups.keys()].sort()) {
    const group = groups.get(key);
    const look = group[0].look;
    const path = new Path2D();
    for (const node of group) trace(path, look.shape, ...at(node), node.radius * scale);
    const colour = colours[`k${look.colour}`];
    pen.globalAlpha = key[0] === "0" ? colours.dim : 1;
    pen.fillStyle = mix(colour, colours.raised, key[0] === "2" ? 0.68 : 0.3);
    pen.strokeStyle = colour;
    pen.lineWidth = nodes.length > CURVES ? 1 : 1.7;
    pen.fill(path);
    pen.stroke(path);
  }
  pen.globalAlpha = 1;
  for (const node of nodes) paintRing(node, scale);
}

function paintRing(node, scale) {
  const focus = node === state.hovered && canvas.matches(":focus-visible");
  const look = focus ? "focus" : node === state.selected ? "ink" : state.cited.has(node) ? "cited" : null;
  if (!look && !fresh(node)) return;
  pen.beginPath();
  pen.arc(...at(node), node.radius * scale + 4.5, 0, 2 * Math.PI);
  pen.strokeStyle = look ? colours[look] : colours[`k${node.look.colour}`];
  pen.lineWidth = focus ? 3 : 2.2;
  pen.setLineDash(look ? [] : [3, 3]);
  pen.stroke();
  pen.setLineDash([]);
}

/** What is at a place of the stage: the nearest node, else an edge, else an area. */
export function find(x, y) {
  const [px, py] = [x - camera.x, y - camera.y];
  const scale = size();
  let [best, least] = [null, 4];
  for (const node of nodesInSight()) {
    const [nx, ny] = at(node);
    const off = Math.hypot(nx - px, ny - py) - node.radius * scale;
    if (off < least) [best, least] = [node, off];
  }
  if (best) return best;
  least = 6;
  const edges = data.edges.length > CURVES && camera.fitted ? [] : edgesInSight();
  for (const edge of edges.length > CURVES ? [] : edges) {
    const off = distance(edge, px, py);
    if (off < least) [best, least] = [edge, off];
  }
  if (best) return best;
  const inside = ({ area }) => area && pen.isPointInPath(area, px * devicePixelRatio, py * devicePixelRatio);
  pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  return hyperedges.filter(shown).filter(inside).at(-1) ?? null;
}

function distance(edge, x, y) {
  if (edge.from === edge.to) {
    const [mx, my] = middle(edge);
    return Math.hypot(mx - x, my - y) - reach(edge) / 2;
  }
  const [[sx, sy], [cx, cy], [tx, ty]] = curve(edge);
  let least = Infinity;
  for (let part = 0; part <= 16; part++) {
    const [a, b] = [part / 16, 1 - part / 16];
    const [px, py] = [b * b * sx + 2 * a * b * cx + a * a * tx, b * b * sy + 2 * a * b * cy + a * a * ty];
    least = Math.min(least, Math.hypot(px - x, py - y));
  }
  return least - Math.hypot(tx - sx, ty - sy) / 40;
}

onChange((before, origin) => {
  const what = ["step", "hidden", "section", "noHubs", "only", "query", "cited"];
  if (what.some((name) => state[name] !== before[name])) keptAt = null;
  if (origin !== "hover") stage.dataset.shown = drawable.filter(shown).length;
  if (state.selected && state.selected !== before.selected && origin !== "graph") reveal(state.selected);
  redraw();
});
