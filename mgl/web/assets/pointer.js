// Mouse, touch and keyboard on the graph.

import { camera, canvas, fit, isLarge, reveal, stage } from "./camera.js";
import { byId, make, many, shorten } from "./dom.js";
import { find, redraw, zoomBy } from "./graph.js";
import { around, byWeight, change, children, drawable, filter, hubs, onChange, onNews, plain, relation, select, shown, state, tied, ties } from "./state.js";

const pointers = new Map();
let hold = null;

function local(event) {
  const box = stage.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

canvas.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  const start = local(event);
  pointers.set(event.pointerId, start);
  if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
  hold = { element: find(...start), start, moved: false };
  hideTip();
});

canvas.addEventListener("pointermove", (event) => {
  const now = local(event);
  if (!pointers.has(event.pointerId)) {
    hover(find(...now), now);
    return;
  }
  const last = pointers.get(event.pointerId);
  if (pointers.size === 2) {
    pinch(event.pointerId, now);
  } else if (hold) {
    hold.moved ||= Math.hypot(now[0] - hold.start[0], now[1] - hold.start[1]) > 4;
    if (hold.moved) drag(now[0] - last[0], now[1] - last[1]);
  }
  pointers.set(event.pointerId, now);
});

function release(event) {
  pointers.delete(event.pointerId);
  if (hold && !hold.moved && event.type === "pointerup") select(hold.element, "graph");
  hold = pointers.size ? { element: null, start: [0, 0], moved: true } : null;
}
canvas.addEventListener("pointerup", release);
canvas.addEventListener("pointercancel", release);
canvas.addEventListener("pointerleave", () => hover(null));

/** A node takes with it the leaves that hang on it alone; all else moves the camera. */
function drag(x, y) {
  const node = !isLarge() && hold.element?.node && !hold.element.hyperedge ? hold.element : null;
  if (!node) {
    camera.x += x;
    camera.y += y;
    camera.fitted = false;
    redraw();
    return;
  }
  const leaves = [...around(node)].filter((each) => each.node && each !== node && each.degree === 1);
  for (const each of [node, ...leaves]) {
    each.x += x / camera.zoom;
    each.y += y / camera.zoom;
  }
  redraw();
}

function pinch(id, now) {
  const [other] = [...pointers].filter(([key]) => key !== id).map(([, place]) => place);
  const last = pointers.get(id);
  const apart = (place) => Math.hypot(place[0] - other[0], place[1] - other[1]) || 1;
  hold.moved = true;
  zoomBy(apart(now) / apart(last), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
}

canvas.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 18 : 1;
    zoomBy(Math.exp(-event.deltaY * lines * 0.0016), ...local(event));
  },
  { passive: false },
);

const tip = byId("tip");

function hover(element, place) {
  if (element !== state.hovered) change({ hovered: element }, "hover");
  canvas.classList.toggle("over", Boolean(element));
  if (!element || !place) return hideTip();
  const [title, body] = element.node
    ? [element.label, element.content]
    : [`${element.from.label} — ${relation(element)} → ${element.to.label}`, element.quote];
  tip.replaceChildren(make("b", { dir: "auto" }, shorten(title, 120)));
  if (body && body !== title) tip.append(make("span", { dir: "auto" }, shorten(body, 180)));
  tip.hidden = false;
  const x = Math.min(place[0] + 14, stage.clientWidth - tip.offsetWidth - 6);
  const below = place[1] + 16;
  const fits = below + tip.offsetHeight < stage.clientHeight;
  tip.style.left = `${Math.max(6, x)}px`;
  tip.style.top = `${fits ? below : Math.max(4, place[1] - tip.offsetHeight - 10)}px`;
}

function hideTip() {
  tip.hidden = true;
}

export function describe(element) {
  if (!element.node) return `edge: ${element.from.label} ${element.relation} ${element.to.label}`;
  const cited = state.cited.has(element) ? ", cited by the answer" : "";
  const others = tied(element).length;
  if (element.layer) return `${element.look.name}: ${element.label}, holds ${many(children(element).length, "node")}`;
  const edges = many(plain(element.out).length + plain(element.into).length, "edge");
  const joins = element.hyperedge ? `joins ${many(others, "node")}` : `part of ${others}`;
  return `${element.look.name}: ${element.label}, ${ties(element).length ? joins : edges}${cited}`;
}

const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

/** The nearest node in a direction; what lies aside counts as farther away. */
function toward(node, [dx, dy]) {
  let best = null;
  let least = Infinity;
  for (const other of drawable) {
    if (other === node || !shown(other)) continue;
    const [x, y] = [other.x - node.x, other.y - node.y];
    const ahead = x * dx + y * dy;
    const cost = ahead + 2.5 * Math.abs(x * dy - y * dx);
    if (ahead > 1 && cost < least) [best, least] = [other, cost];
  }
  return best;
}

/** The node that the keys move from: the one in hand, or the most connected. */
function inHand() {
  const held = state.hovered ?? state.selected;
  return held?.node && !held.layer ? held : drawable.filter(shown).sort(byWeight)[0];
}

function moveTo(node) {
  reveal(node);
  change({ hovered: node }, "hover");
  byId("said").textContent = describe(node);
}

canvas.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const node = inHand();
  if (event.key in ARROWS && node) {
    moveTo((state.hovered ?? state.selected) ? (toward(node, ARROWS[event.key]) ?? node) : node);
  } else if ((event.key === "Enter" || event.key === " ") && node) {
    select(node, "graph");
  } else if (event.key === "+" || event.key === "=") {
    zoomBy(1.3);
  } else if (event.key === "-") {
    zoomBy(1 / 1.3);
  } else if (event.key === "0") {
    fit();
    redraw();
  } else {
    return;
  }
  event.preventDefault();
});
canvas.addEventListener("focusout", () => change({ hovered: null }, "hover"));

byId("zoom-in").addEventListener("click", () => zoomBy(1.4));
byId("zoom-out").addEventListener("click", () => zoomBy(1 / 1.4));
byId("zoom-fit").addEventListener("click", () => {
  fit();
  redraw();
});

/** Filters of a large graph: without its hubs, or only with some nodes. */
export function buildFilters() {
  byId("hubs").addEventListener("click", () => filter({ noHubs: !state.noHubs }));
  byId("show-all").addEventListener("click", () => filter({ only: null }));
  const offer = () => (byId("hubs").hidden = !hubs.size);
  offer(); // before anything is drawn: the button takes room from the canvas
  onNews(offer);
  onChange((before, origin) => {
    if (origin === "hover") return;
    byId("hubs").setAttribute("aria-pressed", String(state.noHubs));
    byId("hubs").textContent = state.noHubs ? `without ${many(hubs.size, "hub")}` : `hide ${many(hubs.size, "hub")}`;
    byId("show-all").hidden = !state.only;
    if (state.only !== before.only) {
      fit();
      redraw();
    }
  });
}
