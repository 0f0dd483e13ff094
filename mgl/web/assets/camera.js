// Where things are on the stage. Places come with the data; the camera moves and zooms.

import { byId } from "./dom.js";
import { data, drawable, hyperedges, isBundle, isDrawn, matches, shown, state } from "./state.js";

export const stage = byId("stage");
export const canvas = byId("graph");
export const camera = { x: 0, y: 0, zoom: 1, fitted: true };

/** Whether there are so many nodes that a picture of them is kept, and moved as it is. */
export const isLarge = () => drawable.length > 2000;

export const size = () => Math.max(isLarge() ? 0.16 : 0.4, Math.min(1.5, Math.sqrt(camera.zoom)));
export const at = (node) => [node.x * camera.zoom, node.y * camera.zoom];

/** Bring the graph of all steps into sight; where a search or filter is on, what it leaves. */
export function fit() {
  const [wide, high] = [stage.clientWidth, stage.clientHeight];
  if (!drawable.length || !wide) return;
  const isNarrowed = state.query || state.only || state.noHubs || state.section || state.hidden.size;
  const wanted = isNarrowed ? drawable.filter((node) => shown(node) && matches(node)) : [];
  const bounds = [Infinity, Infinity, -Infinity, -Infinity];
  for (const { x, y } of wanted.length ? wanted : drawable) {
    bounds[0] = Math.min(bounds[0], x);
    bounds[1] = Math.min(bounds[1], y);
    bounds[2] = Math.max(bounds[2], x);
    bounds[3] = Math.max(bounds[3], y);
  }
  const [left, top, right, bottom] = bounds;
  const room = hyperedges.length ? 44 : 0;
  const across = (wide - 110 - room) / (right - left || 1);
  const down = (high - 64 - room) / (bottom - top || 1);
  camera.zoom = Math.max(0.02, Math.min(across, down, 1.6));
  camera.x = wide / 2 - ((left + right) / 2) * camera.zoom;
  camera.y = high / 2 - ((top + bottom) / 2) * camera.zoom - 5;
  camera.fitted = true;
}

/** Move the camera only as far as it takes to see the element. */
export function reveal(element) {
  if (element.layer) return;
  const edge = 48;
  for (const node of element.node ? [element] : [element.from, element.to]) {
    const [x, y] = at(node);
    const [seenX, seenY] = [x + camera.x, y + camera.y];
    const [wide, high] = [stage.clientWidth, stage.clientHeight];
    if (seenX < edge || seenX > wide - edge) camera.x = wide / 2 - x;
    if (seenY < edge || seenY > high - edge) camera.y = high / 2 - y;
  }
}

/** The curve of an edge from rim to rim: start, handle, end. A loop has none. */
export function curve(edge) {
  const [ax, ay] = at(edge.from);
  const [bx, by] = at(edge.to);
  const scale = size();
  const length = Math.hypot(bx - ax, by - ay) || 1;
  const bent = isBundle(edge) ? 0 : edge.bend * Math.min(1.4, scale);
  const cx = (ax + bx) / 2 - ((by - ay) / length) * bent;
  const cy = (ay + by) / 2 + ((bx - ax) / length) * bent;
  const rim = (x, y, radius) => {
    const far = Math.hypot(cx - x, cy - y) || 1;
    const step = Math.min(radius * scale * 1.12 + 2, far);
    return [x + ((cx - x) / far) * step, y + ((cy - y) / far) * step];
  };
  return [rim(ax, ay, edge.from.radius), [cx, cy], rim(bx, by, edge.to.radius + 1.5)];
}

export const reach = (edge) => edge.from.radius * size() + 18 + 12 * edge.turn;

/** Where the name of an edge stands. */
export function middle(edge) {
  if (edge.from === edge.to) {
    const [x, y] = at(edge.from);
    return [x, y - 1.5 * reach(edge)];
  }
  const [[sx, sy], [cx, cy], [tx, ty]] = curve(edge);
  return [(sx + tx + 2 * cx) / 4, (sy + ty + 2 * cy) / 4];
}

/** The corners of what is in sight, with some room. */
function bounds() {
  const [left, top] = [-camera.x - 60, -camera.y - 60];
  return [left, top, left + stage.clientWidth + 120, top + stage.clientHeight + 120];
}

/** Of a large graph, what is in sight is found once for a place of the camera and a filter: its nodes stay. */
function keepSight(seek) {
  let [kept, key] = [null, []];
  return () => {
    const box = bounds();
    const now = [data.nodes, ...box, camera.zoom, state.step, state.hidden, state.section, state.noHubs, state.only];
    if (!isLarge() || now.some((each, index) => each !== key[index])) [kept, key] = [seek(box), now];
    return kept;
  };
}

/** The nodes that are shown and in sight. */
export const nodesInSight = keepSight(([left, top, right, bottom]) =>
  drawable.filter((node) => {
    const [x, y] = at(node);
    return x >= left && x <= right && y >= top && y <= bottom && shown(node);
  }),
);

export const edgesInSight = keepSight(([left, top, right, bottom]) =>
  data.edges.filter((edge) => {
    const [ax, ay] = at(edge.from);
    const [bx, by] = at(edge.to);
    const aside = (ax < left && bx < left) || (ax > right && bx > right);
    const beyond = (ay < top && by < top) || (ay > bottom && by > bottom);
    return !aside && !beyond && isDrawn(edge);
  }),
);
