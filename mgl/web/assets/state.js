"use strict";
// What the page knows, and one place where it changes.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;

const SVG = "http://www.w3.org/2000/svg";

/** A new element with attributes and children; text children are never markup. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  return dress(element, attributes, children);
}

function draw(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  return dress(element, attributes, children);
}

function dress(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null) continue;
    element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/** Every node and edge under its short name: n0, n1, … and e0, e1, … */
const elements = new Map();

data.nodes.forEach((node, index) => {
  Object.assign(node, { ref: `n${index}`, node: true, out: [], into: [], above: [], below: [], radius: 0 });
  node.layer ??= 0;
  node.look = data.kinds[node.kind];
  elements.set(node.ref, node);
});
data.edges.forEach((edge, index) => {
  Object.assign(edge, { ref: `e${index}`, node: false });
  edge.from = data.nodes[edge.source];
  edge.to = data.nodes[edge.target];
  edge.label = edge.relation;
  edge.from.out.push(edge);
  edge.to.into.push(edge);
  edge.member = Boolean(edge.from.hyperedge) !== Boolean(edge.to.hyperedge);
  elements.set(edge.ref, edge);
});
/** That a category holds a node is no element: it stands on nothing of its own, and is not drawn. */
const holds = data.holds.map(([from, to, step, gone]) => {
  const hold = { from: data.nodes[from], to: data.nodes[to], step, gone };
  hold.from.below.push(hold);
  hold.to.above.push(hold);
  return hold;
});
for (const element of [...elements.values(), ...holds]) {
  const all = element.node ? [element] : [element, element.from, element.to];
  element.since = Math.max(...all.map((each) => each.step));
  element.until = Math.min(...all.map((each) => each.gone ?? Infinity));
}
/** Nodes are drawn, categories are in the tree. */
const drawable = data.nodes.filter((node) => !node.layer);
const categories = data.nodes.filter((node) => node.layer);
for (const node of data.nodes) {
  node.degree = node.out.length + node.into.length;
  node.radius = Math.min(20, 5.5 + 2.1 * Math.sqrt(node.degree));
}

/** A member edge ties a hyperedge to one of the nodes that it joins; the others are plain. */
const plain = (edges) => edges.filter((edge) => !edge.member);
const ties = (node) => [...node.out, ...node.into].filter((edge) => edge.member);
const tied = (node) => ties(node).filter(shown).map((edge) => (edge.from === node ? edge.to : edge.from));

const linked = (node) => [...node.out, ...node.into].filter(shown).length;

const byReading = (one, other) => one.start - other.start || one.end - other.end;
const byWeight = (one, other) => other.degree - one.degree || byReading(one, other);

const state = {
  selected: null,
  hovered: null,
  step: data.steps - 1,
  hidden: new Set(),
  query: "",
  cited: new Set(),
  paths: [],
};

const there = (element) => element.since <= state.step && state.step < element.until;
const kindsOf = (element) => (element.node ? [element] : [element.from, element.to]).map((node) => node.kind);
const shown = (element) => there(element) && !kindsOf(element).some((kind) => state.hidden.has(kind));

const fresh = (element) => state.step < data.steps - 1 && element.step === state.step;

function matches(element) {
  if (!state.query) return true;
  const words = element.node
    ? [element.label, element.content, element.id, element.look.name]
    : [element.relation, element.id];
  return words.some((each) => each.toLowerCase().includes(state.query));
}

/** What a node holds at this step, and what holds it; each may be in several categories. */
const held = (node) => node.below.filter(there).map((hold) => hold.to);
const holders = (node) => node.above.filter(there).map((hold) => hold.from);

/** A category and all below it, with the edges between these. */
function within(category) {
  const inside = new Set([category]);
  for (const node of inside) held(node).forEach((each) => inside.add(each));
  for (const edge of data.edges) {
    if (inside.has(edge.from) && inside.has(edge.to)) inside.add(edge);
  }
  return inside;
}

/** A node's neighbourhood, what a category holds, or an edge's two ends, as a set of elements. */
function around(element) {
  if (!element) return new Set();
  if (element.layer) return within(element);
  if (!element.node) return new Set([element, element.from, element.to]);
  const near = new Set([element]);
  for (const edge of [...element.out, ...element.into]) {
    near.add(edge).add(edge.from).add(edge.to);
  }
  return near;
}

const listeners = [];
const onChange = (listener) => listeners.push(listener);

/** Change the state and let every part of the page draw what changed. */
function change(patch, origin = "") {
  const before = { ...state };
  Object.assign(state, patch);
  for (const listener of listeners) listener(before, origin);
}

function select(element, origin = "") {
  if (element && !shown(element)) {
    const hidden = new Set(state.hidden);
    kindsOf(element).forEach((kind) => hidden.delete(kind));
    const step = Math.min(Math.max(state.step, element.since), element.until - 1);
    change({ selected: element, hidden, step }, origin);
  } else {
    change({ selected: element }, origin);
  }
}
