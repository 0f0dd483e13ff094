// What the page knows of a memory, and one place where what is shown of it changes.

import { loadNews, loadPage } from "./source.js";

export const data = {};

/** Every node and edge under its short name: n0, n1, … and e0, e1, … */
export const elements = new Map();
const byName = new Map();

/** Nodes are drawn, categories are in the tree. */
export const drawable = [];
export const categories = [];
export const hyperedges = [];
/** Nodes with far more edges than the others: three standard deviations above the mean, and ten. */
export const hubs = new Set();

/** Take in what the page shows, in place of what it showed before. */
function take(page) {
  Object.assign(data, page);
  elements.clear();
  byName.clear();
  data.nodes.forEach((node, index) => {
    Object.assign(node, { ref: `n${index}`, node: true, out: [], into: [], above: [], below: [] });
    node.layer ??= 0;
    node.look = data.kinds[node.kind];
    elements.set(node.ref, node);
    byName.set(node.id, node);
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
  const moved = (data.turns ?? []).filter(({ place }) => place !== null);
  for (const element of elements.values()) {
    const within = moved.find(({ start, end }) => start <= element.start && element.start < end);
    const place = within ? data.turns[within.place].start : element.start;
    element.section = data.sections.find(({ start, end }) => start <= place && place < end);
  }
  for (const node of data.nodes) {
    node.degree = node.out.length + node.into.length;
    node.radius = Math.min(20, 5.5 + 2.1 * Math.sqrt(node.degree));
  }
  for (const [list, wanted] of [[drawable, (node) => !node.layer], [categories, (node) => node.layer], [hyperedges, (node) => node.hyperedge]]) {
    list.splice(0, Infinity);
    for (const node of data.nodes) if (wanted(node)) list.push(node);
  }
  const mean = drawable.reduce((sum, { degree }) => sum + degree, 0) / (drawable.length || 1);
  const spread = Math.sqrt(drawable.reduce((sum, { degree }) => sum + (degree - mean) ** 2, 0) / (drawable.length || 1));
  hubs.clear();
  for (const node of drawable) if (!node.hyperedge && node.degree >= Math.max(10, mean + 3 * spread)) hubs.add(node);
}

take(await loadPage());

export const findNode = (id) => byName.get(id);

/** A member edge ties a hyperedge to one of the nodes that it joins; the others are plain. */
export const plain = (edges) => edges.filter((edge) => !edge.member);
export const ties = (node) => [...node.out, ...node.into].filter((edge) => edge.member);
export const tied = (node) =>
  ties(node).filter(shown).map((edge) => (edge.from === node ? edge.to : edge.from));

export const byReading = (one, other) => one.start - other.start || one.end - other.end;
export const byWeight = (one, other) => other.degree - one.degree || byReading(one, other);

export const state = {
  selected: null,
  hovered: null,
  step: data.steps - 1,
  hidden: new Set(),
  section: null,
  noHubs: false,
  only: null, // the nodes that alone are shown, if not all are
  query: "",
  hits: [],
  cited: new Set(),
  paths: [],
};

export const there = (element) => element.since <= state.step && state.step < element.until;
const kindsOf = (element) => (element.node ? [element] : [element.from, element.to]).map((node) => node.kind);
const allowed = (node) =>
  !state.hidden.has(node.kind) &&
  (!state.section || node.section === state.section) &&
  !(state.noHubs && hubs.has(node)) &&
  (!state.only || state.only.has(node));
export const shown = (element) =>
  there(element) && (element.node ? allowed(element) : allowed(element.from) && allowed(element.to));

/** Edges between the same two nodes are drawn as one where they are many, unless one is selected. */
const APART = 3;
export const isBundle = ({ group }) => group.length > APART && !group.includes(state.selected);
export const isDrawn = (edge) => shown(edge) && (!isBundle(edge) || edge === edge.group.find(shown));
export const relation = (edge) => (isBundle(edge) ? `${edge.group.filter(shown).length} relations` : edge.relation);

export const fresh = (element) => state.step < data.steps - 1 && element.step === state.step;

export function matches(element) {
  if (!state.query) return true;
  const words = element.node
    ? [element.label, element.content, element.id, element.look.name]
    : [element.relation, element.id];
  return words.some((each) => each.toLowerCase().includes(state.query));
}

/** What a node holds at this step, and what holds it; each may be in several categories. */
export const children = (node) => node.below.filter(there).map((hold) => hold.to);
export const holders = (node) => node.above.filter(there).map((hold) => hold.from);
export const isHeld = (node, holder) => node.above.some((hold) => hold.from === holder);

/** A category and all below it, with the edges between these. */
function within(category) {
  const inside = new Set([category]);
  for (const node of inside) children(node).forEach((each) => inside.add(each));
  for (const edge of data.edges) {
    if (inside.has(edge.from) && inside.has(edge.to)) inside.add(edge);
  }
  return inside;
}

/** A node's neighbourhood, what a category holds, or an edge's two ends, as a set of elements. */
export function around(element) {
  if (!element) return new Set();
  if (element.layer) return within(element);
  if (!element.node) return new Set([element, element.from, element.to]);
  const near = new Set([element]);
  for (const edge of [...element.out, ...element.into]) {
    near.add(edge).add(edge.from).add(edge.to);
  }
  return near;
}

const renewers = [];
/** Have `renew` called when the memory has changed, before `onChange` is told; its argument says
    whether turns were deleted. */
export const onNews = (renew) => renewers.push(renew);

/** The ids of the turns that were deleted. */
export const findDeleted = () => new Set((data.turns ?? []).filter(({ forgotten }) => forgotten).map(({ id }) => id));

/** Show what has changed of the memory since it was loaded, where the reader is; false if nothing. */
export async function renew() {
  const page = await loadNews(data.version);
  if (!page) return false;
  const isLast = state.step === data.steps - 1;
  const names = new Set([...state.hidden].map((kind) => data.kinds[kind].name));
  const key = ({ node, id }) => `${node ? "node" : "edge"} ${id}`;
  const chosen = state.selected && key(state.selected);
  const [only, section] = [state.only && [...state.only].map(({ id }) => id), state.section];
  const before = findDeleted().size;
  take(page);
  Object.assign(state, {
    selected: [...elements.values()].find((each) => key(each) === chosen) ?? null,
    hovered: null,
    step: isLast ? data.steps - 1 : Math.min(state.step, data.steps - 1),
    hidden: new Set(data.kinds.flatMap(({ name }, kind) => (names.has(name) ? [kind] : []))),
    section: (section && data.sections.find(({ start }) => start === section.start)) || null,
    only: only && new Set(only.map(findNode).filter(Boolean)),
  });
  const isCut = findDeleted().size > before;
  const done = renewers.map((each) => each(isCut));
  change({}, "start");
  await Promise.all(done);
  document.documentElement.dataset.version = data.version;
  return true;
}

const listeners = [];
export const onChange = (listener) => listeners.push(listener);

/** Change the state and let every part of the page draw what changed. */
export function change(patch, origin = "") {
  const before = { ...state };
  Object.assign(state, patch);
  for (const listener of listeners) listener(before, origin);
}

export function select(element, origin = "") {
  if (element && !shown(element)) {
    const hidden = new Set(state.hidden);
    kindsOf(element).forEach((kind) => hidden.delete(kind));
    const step = Math.min(Math.max(state.step, element.since), element.until - 1);
    change({ selected: element, hidden, step, section: null, noHubs: false, only: null }, origin);
  } else {
    change({ selected: element }, origin);
  }
}

/** Give up the selection where a filter hides it. */
export function filter(patch, origin = "") {
  const selected = state.selected;
  change(patch, origin);
  if (selected && !shown(selected)) select(null);
}
