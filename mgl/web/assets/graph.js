// The graph: places come with the page; zooming moves nodes apart and leaves their names readable.

const stage = byId("stage");
const graph = byId("graph");
const world = byId("world");
const camera = { x: 0, y: 0, zoom: 1, fitted: true };
const LABEL = 30;
const pen = document.createElement("canvas").getContext("2d");
pen.font = "12px system-ui, sans-serif";

/** Edges between the same two nodes are bent apart; a lone edge is straight. */
function bends() {
  const pairs = new Map();
  for (const edge of data.edges) {
    const key = [edge.source, edge.target].sort((a, b) => a - b).join(" ");
    if (!pairs.has(key)) pairs.set(key, []);
    pairs.get(key).push(edge);
  }
  for (const edges of pairs.values()) {
    edges.forEach((edge, index) => {
      const bend = (index - (edges.length - 1) / 2) * 34;
      edge.bend = edge.source < edge.target ? bend : -bend;
      edge.turn = index;
    });
  }
}

function buildGraph() {
  bends();
  if (stage.clientHeight > stage.clientWidth) {
    for (const node of drawable) [node.x, node.y] = [node.y, node.x];
  }
  buildAreas();
  for (const edge of data.edges) {
    edge.line = draw("path", { class: "line" });
    edge.reach = draw("path", { class: "reach" });
    edge.drawn = draw("g", { class: edge.member ? "edge member" : "edge", "data-ref": edge.ref }, edge.line, edge.reach);
    byId("edges").append(edge.drawn);
    edge.name = draw("text", { class: "relation", hidden: true }, shorten(edge.relation, 40));
  }
  for (const node of drawable) {
    node.drawn = draw(
      "g",
      {
        class: `node k${node.look.colour}`,
        "data-ref": node.ref,
        "data-id": node.id,
        role: "button",
        tabindex: "-1",
        "aria-pressed": "false",
      },
      draw("circle", { class: "ring", r: node.radius + 4.5 }),
      draw("path", { class: "shape", d: outline(node.look.shape, node.radius) }),
    );
    byId("nodes").append(node.drawn);
    const label = shorten(node.label, LABEL);
    node.width = pen.measureText(label).width;
    node.name = draw("text", { class: "label" }, label);
    byId("names").append(node.name);
  }
  for (const edge of data.edges) byId("names").append(edge.name);
  if (drawable.length) [...drawable].sort(byWeight)[0].drawn.setAttribute("tabindex", "0");
  stage.classList.toggle("still", elements.size > 2000);
  byId("empty").hidden = drawable.length > 0;
}

const size = () => Math.max(0.4, Math.min(1.5, Math.sqrt(camera.zoom)));
const at = (node) => [node.x * camera.zoom, node.y * camera.zoom];

function fit() {
  const box = stage.getBoundingClientRect();
  const nodes = drawable;
  if (!nodes.length || !box.width) return;
  const xs = nodes.map((node) => node.x);
  const ys = nodes.map((node) => node.y);
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
  const [wide, high] = [right - left || 1, bottom - top || 1];
  const room = hyperedges.length ? 44 : 0;
  camera.zoom = Math.min((box.width - 110 - room) / wide, (box.height - 64 - room) / high, 1.6);
  camera.zoom = Math.max(camera.zoom, 0.05);
  camera.x = box.width / 2 - ((left + right) / 2) * camera.zoom;
  camera.y = box.height / 2 - ((top + bottom) / 2) * camera.zoom - 5;
  camera.fitted = true;
}

function zoomBy(factor, x = stage.clientWidth / 2, y = stage.clientHeight / 2) {
  const zoom = Math.max(0.05, Math.min(8, camera.zoom * factor));
  camera.x = x - ((x - camera.x) * zoom) / camera.zoom;
  camera.y = y - ((y - camera.y) * zoom) / camera.zoom;
  camera.zoom = zoom;
  camera.fitted = false;
  redraw();
}

/** Move the camera only as far as it takes to see the element. */
function reveal(element) {
  if (element.layer) return;
  const nodes = element.node ? [element] : [element.from, element.to];
  const edge = 48;
  for (const node of nodes) {
    const [x, y] = at(node);
    const [seenX, seenY] = [x + camera.x, y + camera.y];
    const [wide, high] = [stage.clientWidth, stage.clientHeight];
    if (seenX < edge || seenX > wide - edge) camera.x = wide / 2 - x;
    if (seenY < edge || seenY > high - edge) camera.y = high / 2 - y;
  }
}

/** The curve of an edge from rim to rim, and its middle. */
function curve(edge) {
  const [ax, ay] = at(edge.from);
  const [bx, by] = at(edge.to);
  const scale = size();
  if (edge.from === edge.to) {
    const reach = edge.from.radius * scale + 18 + 12 * edge.turn;
    return {
      path: `M${ax - 4} ${ay - edge.from.radius * scale}C${ax - reach} ${ay - 2 * reach} ${ax + reach} ${ay - 2 * reach} ${ax + 4} ${ay - edge.from.radius * scale - 2}`,
      x: ax,
      y: ay - 1.5 * reach,
    };
  }
  const length = Math.hypot(bx - ax, by - ay) || 1;
  const bend = edge.bend * Math.min(1.4, scale);
  const cx = (ax + bx) / 2 - ((by - ay) / length) * bend;
  const cy = (ay + by) / 2 + ((bx - ax) / length) * bend;
  const rim = (x, y, radius) => {
    const far = Math.hypot(cx - x, cy - y) || 1;
    const step = Math.min(radius * scale * 1.12 + 2, far);
    return [x + ((cx - x) / far) * step, y + ((cy - y) / far) * step];
  };
  const [sx, sy] = rim(ax, ay, edge.from.radius);
  const [tx, ty] = rim(bx, by, edge.to.radius + 1.5);
  const path = `M${sx.toFixed(1)} ${sy.toFixed(1)}Q${cx.toFixed(1)} ${cy.toFixed(1)} ${tx.toFixed(1)} ${ty.toFixed(1)}`;
  return { path, x: (ax + bx + 2 * cx) / 4, y: (ay + by + 2 * cy) / 4 };
}

function placeEdge(edge) {
  const { path, x, y } = curve(edge);
  edge.line.setAttribute("d", path);
  edge.reach.setAttribute("d", path);
  edge.middle = [x, y];
}

function placeNode(node) {
  const [x, y] = at(node);
  node.drawn.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${size().toFixed(3)})`);
}

function pan() {
  world.setAttribute("transform", `translate(${camera.x.toFixed(1)} ${camera.y.toFixed(1)})`);
}

let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    redrawNow();
  });
}

function redrawNow() {
  pan();
  hyperedges.filter(shown).forEach(placeArea);
  drawable.forEach(placeNode);
  data.edges.forEach(placeEdge);
  placeNames();
}

const overlaps = (one, other) =>
  one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3];

/** Names are set where they cover no node and no other name; what matters most comes first. */
function placeNames() {
  const scale = size();
  const near = around(state.hovered || state.selected);
  const focus = new Set([state.hovered, state.selected]);
  const visible = drawable.filter(shown);
  const disc = (node) => {
    const [x, y] = at(node);
    const half = node.radius * scale;
    return [x - half, y - half, x + half, y + half];
  };
  const taken = visible.filter((node) => !near.size || near.has(node)).map(disc);
  const rank = (node) =>
    (focus.has(node) ? 4 : 0) + (near.has(node) ? 2 : 0) + (state.cited.has(node) ? 1 : 0);
  for (const node of drawable) node.name.setAttribute("hidden", "");
  for (const edge of data.edges) edge.name.setAttribute("hidden", "");
  const order = [...visible].sort((a, b) => rank(b) - rank(a) || byWeight(a, b));
  const named = (node) => matches(node) || focus.has(node);
  const first = order.filter((node) => named(node) && rank(node) > 1);
  first.forEach((node) => placeName(node, scale, focus.has(node), taken));
  placeRelations(near, focus, taken);
  if (near.size) taken.push(...visible.filter((node) => !near.has(node)).map(disc));
  const rest = order.filter((node) => named(node) && rank(node) <= 1);
  rest.forEach((node) => placeName(node, scale, false, taken));
  for (const node of drawable) node.name.classList.toggle("dim", near.size > 0 && !near.has(node));
}

function placeName(node, scale, always, taken) {
  const [x, y] = at(node);
  const gap = node.radius * scale + (state.cited.has(node) ? 8 : 5);
  const [wide, high] = [node.width, 13];
  const slant = gap * 0.75;
  const spots = [
    ["middle", x, y + gap + 9, [x - wide / 2, y + gap, x + wide / 2, y + gap + high]],
    ["start", x + gap, y + 4, [x + gap, y - high / 2, x + gap + wide, y + high / 2]],
    ["end", x - gap, y + 4, [x - gap - wide, y - high / 2, x - gap, y + high / 2]],
    ["middle", x, y - gap - 2, [x - wide / 2, y - gap - high, x + wide / 2, y - gap]],
    ["start", x + slant, y + slant + 8, [x + slant, y + slant - 3, x + slant + wide, y + slant + high - 3]],
    ["start", x + slant, y - slant, [x + slant, y - slant - 10, x + slant + wide, y - slant + 3]],
    ["end", x - slant, y + slant + 8, [x - slant - wide, y + slant - 3, x - slant, y + slant + high - 3]],
    ["end", x - slant, y - slant, [x - slant - wide, y - slant - 10, x - slant, y - slant + 3]],
  ];
  const inside = ([left, , right]) => left + camera.x > 2 && right + camera.x < stage.clientWidth - 2;
  const clear = ([, , , box]) => !taken.some((other) => overlaps(box, other));
  const legible = ([, , , box]) => !taken.some((other) => other.name && overlaps(box, other));
  const fitting = spots.filter((spot) => inside(spot[3]));
  const covered = ([, , , box]) => taken.filter((other) => overlaps(box, other)).length;
  const least = (one, other) => covered(one) - covered(other);
  const hub = node.radius > 11.5 && fitting.filter(legible).sort(least)[0];
  const spot = fitting.find(clear) || hub || (always ? fitting[0] || spots[0] : null);
  if (!spot) return;
  const [anchor, textX, textY, box] = spot;
  box.name = true;
  node.name.removeAttribute("hidden");
  dress(node.name, { "text-anchor": anchor, x: textX.toFixed(1), y: textY.toFixed(1) }, []);
  taken.push(box);
}

/** Relations are named at the element in hand: all that fit, its own in any case. */
function placeRelations(near, focus, taken) {
  for (const edge of data.edges) {
    if (!near.has(edge) || !shown(edge) || (edge.member && !focus.has(edge))) continue;
    const [x, y] = edge.middle;
    const half = pen.measureText(edge.name.textContent).width / 2;
    const box = [x - half, y - 7, x + half, y + 7];
    if (!focus.has(edge) && taken.some((other) => overlaps(box, other))) continue;
    box.name = true;
    taken.push(box);
    edge.name.removeAttribute("hidden");
    dress(edge.name, { "text-anchor": "middle", x: x.toFixed(1), y: (y + 4).toFixed(1) }, []);
  }
}

function describe(node) {
  const cited = state.cited.has(node) ? ", cited by the answer" : "";
  const others = tied(node).length;
  if (node.layer) return `${node.look.name}: ${node.label}, holds ${many(held(node).length, "node")}`;
  const edges = many(plain(node.out).length + plain(node.into).length, "edge");
  const joins = node.hyperedge ? `joins ${many(others, "node")}` : `part of ${others}`;
  const links = ties(node).length ? joins : edges;
  return `${node.look.name}: ${node.label}, ${links}${cited}`;
}

function dressGraph() {
  const hand = state.hovered || state.selected;
  const near = around(hand);
  for (const each of [...drawable, ...data.edges]) {
    for (const drawn of each.area ? [each.drawn, each.area] : [each.drawn]) {
      const list = drawn.classList;
      drawn.toggleAttribute("hidden", !shown(each));
      list.toggle("dim", Boolean(hand && !near.has(each)) || !matches(each));
      list.toggle("near", near.has(each));
      list.toggle("on", state.selected === each);
      list.toggle("fresh", fresh(each));
    }
    if (!each.node) continue;
    each.drawn.classList.toggle("cited", state.cited.has(each));
    each.drawn.setAttribute("aria-pressed", String(state.selected === each));
    each.drawn.setAttribute("aria-label", describe(each));
  }
  stage.dataset.shown = drawable.filter(shown).length;
}

onChange((before, origin) => {
  if (state.selected && state.selected !== before.selected && origin !== "graph") {
    reveal(state.selected);
  }
  dressGraph();
  redraw();
});
