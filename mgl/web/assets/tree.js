// The hierarchy as a tree: what a category holds is rendered when it is opened.

import { hash } from "./detail.js";
import { byId, make, many, number, shorten } from "./dom.js";
import { sign } from "./shapes.js";
import { categories, change, children, drawable, elements, holders, onChange, onNews, select, state, there } from "./state.js";

const tree = byId("tree");
const collator = new Intl.Collator(undefined, { numeric: true });
const inOrder = (nodes) => nodes.sort((one, other) => other.layer - one.layer || collator.compare(one.label, other.label));

/** A node is in the tree once below each category that holds it; the way to it is its key there. */
const keysOf = (path) => path.map((_, index) => path.slice(0, index + 1).map((node) => node.ref).join("/"));
const wayTo = (node) => [...holders(node).slice(0, 1).flatMap(wayTo), node];

const opened = new Set();
const reached = new Set();
/** What is open only because the selected node is below it. */
let trail = new Set();

function treeRow(node, key) {
  const said = [sign(node.look), make("bdi", {}, shorten(node.label, 90))];
  const attributes = { "data-ref": node.ref, class: reached.has(key) ? "reached" : null };
  if (reached.has(key)) said.push(make("span", { class: "unseen" }, ", on the answer's path"));
  if (!node.layer) return make("li", {}, make("a", { href: hash(node), ...attributes }, ...said));
  const below = inOrder(children(node));
  const list = make("ul");
  const count = make("small", {}, `layer ${node.layer} · ${number.format(below.length)}`);
  const fold = make("details", {}, make("summary", attributes, ...said, " ", count), list);
  const fill = () => {
    if (list.childElementCount) return;
    if (below.length === 1) opened.add(`${key}/${below[0].ref}`);
    list.append(...below.map((each) => treeRow(each, `${key}/${each.ref}`)));
    dressTree(list);
  };
  fold.open = opened.has(key) || trail.has(key);
  if (fold.open) fill();
  fold.addEventListener("toggle", () => {
    if (!fold.isConnected) return;
    if (fold.open) fill();
    if (!fold.open) trail.delete(key);
    if (!fold.open) opened.delete(key);
    else if (!trail.has(key)) opened.add(key);
  });
  return make("li", {}, fold);
}

function plant() {
  const roots = inOrder(categories.filter((node) => there(node) && !holders(node).length));
  const alone = drawable.filter((node) => there(node) && !holders(node).length).length;
  const rest = alone ? [make("p", { class: "note" }, `${many(alone, "node")} in no category`)] : [];
  tree.replaceChildren(make("ul", {}, ...roots.map((node) => treeRow(node, node.ref))), ...rest);
}

function dressTree(part) {
  for (const each of part.querySelectorAll("[data-ref]")) {
    const on = elements.get(each.dataset.ref) === state.selected;
    each.classList.toggle("on", on);
    if (on) each.setAttribute("aria-current", "true");
    else each.removeAttribute("aria-current");
  }
}

/** Move the tree only as far as it takes to see the first such row. */
function bringRow(selector) {
  const found = tree.querySelector(selector);
  if (!found) return;
  const [box, pane] = [found.getBoundingClientRect(), tree.getBoundingClientRect()];
  if (box.top < pane.top || box.bottom > pane.bottom) tree.scrollTop += box.top - pane.top - pane.height / 3;
}

function growTree(before, origin) {
  const answer = state.paths !== before.paths;
  if (answer) {
    const keys = state.paths.flatMap(keysOf);
    for (const set of [opened, reached]) {
      set.clear();
      keys.forEach((key) => set.add(key));
    }
  }
  const chosen = state.selected !== before.selected && state.selected?.node ? state.selected : null;
  const away = chosen && origin !== "tree" && !tree.querySelector(`[data-ref=${chosen.ref}]`);
  if (away) trail = new Set(keysOf(wayTo(chosen).slice(0, -1)));
  if (answer || away || state.step !== before.step || origin === "start") plant();
  dressTree(tree);
  if (chosen && origin !== "tree") bringRow(".on");
  else if (answer) bringRow(".reached");
}

export function buildTree() {
  byId("hierarchy").hidden = !categories.length;
  byId("sides").classList.toggle("three", categories.length > 0);
}
onNews(buildTree);

onChange((before, origin) => {
  if (categories.length && origin !== "hover") growTree(before, origin);
});
/** A name selects and opens; pressed again, it closes. The keyboard and the mark always turn. */
tree.addEventListener("click", (event) => {
  const place = event.target.closest("[data-ref]");
  if (!place) return;
  const node = elements.get(place.dataset.ref);
  const named = event.detail && event.target.closest("bdi");
  if (!node.layer || (named && place.parentElement.open && state.selected !== node)) event.preventDefault();
  select(node, "tree");
});
const point = (hovered) => hovered === state.hovered || change({ hovered }, "hover");
tree.addEventListener("pointerover", (event) => {
  const place = event.target.closest("a[data-ref]");
  point(place ? elements.get(place.dataset.ref) : null);
});
tree.addEventListener("pointerleave", () => point(null));
