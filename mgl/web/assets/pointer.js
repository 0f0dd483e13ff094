// Mouse, touch and keyboard on the graph.

const pointers = new Map();
let hold = null;

const under = (target) => {
  const found = target instanceof Element && target.closest("[data-ref]");
  return found ? elements.get(found.dataset.ref) : null;
};

function local(event) {
  const box = stage.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

graph.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  pointers.set(event.pointerId, local(event));
  graph.setPointerCapture(event.pointerId);
  const area = event.target.classList.contains("area");
  hold = { element: under(event.target), area, start: local(event), moved: false };
  hide();
});

graph.addEventListener("pointermove", (event) => {
  const now = local(event);
  if (!pointers.has(event.pointerId)) {
    hover(under(event.target), now);
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
graph.addEventListener("pointerup", release);
graph.addEventListener("pointercancel", release);
graph.addEventListener("pointerleave", () => hover(null));

/** A node takes with it the leaves that hang on it alone; ground and areas move the camera. */
function drag(x, y) {
  const node = hold.element && hold.element.node && !hold.area ? hold.element : null;
  if (!node) {
    camera.x += x;
    camera.y += y;
    camera.fitted = false;
    pan();
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

graph.addEventListener(
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
  if (!element || !place) return hide();
  const [title, body] = element.node
    ? [element.label, element.content]
    : [`${element.from.label} — ${element.relation} → ${element.to.label}`, element.quote];
  tip.replaceChildren(make("b", { dir: "auto" }, shorten(title, 120)));
  if (body && body !== title) tip.append(make("span", { dir: "auto" }, shorten(body, 180)));
  tip.hidden = false;
  const x = Math.min(place[0] + 14, stage.clientWidth - tip.offsetWidth - 6);
  const below = place[1] + 16;
  const fits = below + tip.offsetHeight < stage.clientHeight;
  tip.style.left = `${Math.max(6, x)}px`;
  tip.style.top = `${fits ? below : Math.max(4, place[1] - tip.offsetHeight - 10)}px`;
}

function hide() {
  tip.hidden = true;
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

function focus(node) {
  for (const each of drawable) each.drawn.setAttribute("tabindex", each === node ? "0" : "-1");
  reveal(node);
  redrawNow();
  node.drawn.focus({ preventScroll: true });
}

graph.addEventListener("keydown", (event) => {
  const node = under(event.target);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key in ARROWS && node) {
    const next = toward(node, ARROWS[event.key]);
    if (next) focus(next);
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
graph.addEventListener("focusin", (event) => {
  const node = under(event.target);
  if (node && event.target.matches(":focus-visible")) change({ hovered: node }, "hover");
});
graph.addEventListener("focusout", () => change({ hovered: null }, "hover"));
