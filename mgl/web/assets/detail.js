// The panel: one element in full, or, with none selected, all nodes as a list.

import { byId, button, calm, fill, make, number, pairList, shorten } from "./dom.js";
import { handEdits } from "./edit.js";
import { describe } from "./pointer.js";
import { sign } from "./shapes.js";
import { around, byReading, change, data, drawable, elements, matches, onChange, plain, select, shown, state, ties } from "./state.js";
import { besides, bringElement, bringRange, bringSource } from "./text.js";

const detail = byId("detail");
export const hash = (element) => `#${element.node ? "node" : "edge"}=${encodeURIComponent(element.id)}`;

export function link(element, name = element.label) {
  const made = make("a", { href: hash(element), dir: "auto", "data-ref": element.ref });
  if (element.node) made.append(sign(element.look));
  made.append(shorten(name, 90));
  return made;
}

detail.addEventListener("click", (event) => {
  const made = event.target.closest("a[data-ref]");
  if (!made) return;
  event.preventDefault();
  select(elements.get(made.dataset.ref));
  detail.focus({ preventScroll: true });
});

const range = (element) => `${number.format(element.start)}–${number.format(element.end)}`;

function facts(element) {
  const rows = [
    ["id", element.id],
    ["characters", range(element)],
    ["place", element.section?.label],
    ["read at", data.steps > 1 ? `step ${element.step + 1} of ${data.steps}` : ""],
    ["gone at", element.gone === undefined ? "" : `step ${element.gone + 1} of ${data.steps}`],
  ];
  return pairList(rows.filter(([, value]) => value));
}

const quotation = (element) => make("blockquote", { dir: "auto", tabindex: 0 }, element.quote);

function section(title, items, row, attributes = {}) {
  if (!items.length) return [];
  const list = make("ul", attributes);
  fill(list, items, row);
  return [make("h3", {}, `${title} `, make("small", {}, number.format(items.length))), list];
}

const edges = (title, some, row) =>
  section(title, some, (edge) => make("li", shown(edge) ? {} : { class: "off" }, ...row(edge)));

function nodePanel(node) {
  const content = node.content && ![node.label, node.quote].includes(node.content);
  return [
    make(
      "div",
      {},
      ...(content ? [make("p", { class: "content", dir: "auto" }, node.content)] : []),
      quotation(node),
      facts(node),
      neighbours(node),
      ...handEdits(node),
    ),
    make(
      "div",
      {},
      ...edges(node.hyperedge ? "Joins" : "Part of", ties(node), (edge) => [
        link(edge.from === node ? edge.to : edge.from),
      ]),
      ...edges("In", node.above, (hold) => [link(hold.from)]),
      ...edges("Holds", node.below, (hold) => [link(hold.to)]),
      ...edges("Edges out", plain(node.out), (edge) => [link(edge), " → ", link(edge.to)]),
      ...edges("Edges in", plain(node.into), (edge) => [link(edge.from), " → ", link(edge)]),
      ...sharing(node),
    ),
  ];
}

/** Show only a node with its neighbours, or these besides what is shown alone. */
function neighbours(node) {
  if (node.layer || !node.degree) return "";
  const near = [...around(node)].filter((each) => each.node && !each.layer);
  const isNew = near.some((each) => !state.only?.has(each));
  const show = () => change({ only: new Set([...(state.only ?? []), ...near]), noHubs: false });
  return button(state.only ? "Show its neighbours, too" : "Show only its neighbours", show, { class: "near", disabled: !isNew });
}

function edgePanel(edge) {
  const others = edge.group.filter((each) => each !== edge);
  return [
    make("div", {}, quotation(edge), facts(edge), ...handEdits(edge)),
    make(
      "div",
      {},
      make("h3", {}, "From"),
      link(edge.from),
      make("h3", {}, "To"),
      link(edge.to),
      ...section("Between the same nodes", others, (each) => make("li", {}, link(each)), { class: "row" }),
      ...sharing(edge),
    ),
  ];
}

function sharing(element) {
  const name = (each) => (each.node ? each.label : `${each.from.label} — ${each.relation} → ${each.to.label}`);
  const row = (each) => make("li", {}, link(each, name(each)));
  return section("On the same passage", besides(element), row, { class: "row" });
}

function textHits() {
  const row = ({ range, before, words, after }) => {
    const made = button("", () => (bringRange(range), bringSource()), { class: "hit", dir: "auto" });
    made.append("…", before, make("b", {}, words), after, "…");
    return make("li", {}, made);
  };
  return section("In the text", state.hits, row);
}

function overview() {
  if (state.query) return [...textHits(), ...nodeList()];
  return nodeList();
}

function nodeList() {
  if (!data.nodes.length) return [make("p", { class: "note" }, "There is no node to show.")];
  const nodes = (state.query ? data.nodes : drawable).filter(shown).filter(matches);
  const links = new Map(nodes.map((node) => [node, 0]));
  for (const edge of data.edges.filter(shown)) {
    for (const node of [edge.from, edge.to]) links.set(node, (links.get(node) ?? 0) + 1);
  }
  nodes.sort((one, other) => links.get(other) - links.get(one) || byReading(one, other));
  const row = (node) =>
    make(
      "li",
      { class: state.cited.has(node) ? "cited" : "" },
      link(node),
      make("small", {}, node.layer ? node.look.name : String(links.get(node))),
    );
  return section(state.query ? "Nodes found" : "Nodes, most connected first", nodes, row, { class: "index" });
}

function dressDetail() {
  const element = state.selected;
  if (!element) {
    detail.replaceChildren(...overview());
    return;
  }
  const close = () => {
    select(null);
    detail.focus({ preventScroll: true });
  };
  const down = () => {
    byId("source").scrollIntoView({ behavior: calm ? "auto" : "smooth" });
    bringElement(element);
  };
  const kind = element.node ? [sign(element.look), element.look.name] : ["edge"];
  detail.replaceChildren(
    make(
      "div",
      { class: "top" },
      make("h2", { dir: "auto" }, element.label),
      make("span", { class: "kind" }, ...kind),
      ...(state.cited.has(element) ? [make("span", { class: "tag" }, "cited")] : []),
      button("Show in the text", down, { class: "down" }),
      button("×", close, { class: "close", "aria-label": "Close: show all nodes" }),
    ),
    make("div", { class: "whole" }, ...(element.node ? nodePanel(element) : edgePanel(element))),
  );
  detail.scrollTop = 0;
}

onChange((before, origin) => {
  if (origin !== "hover") dressDetail();
  if (state.selected === before.selected || !state.selected) return;
  byId("said").textContent = `${describe(state.selected)}. Characters ${range(state.selected)}.`;
});
