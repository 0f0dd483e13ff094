// The text: every passage that the graph stands on, and the way to it.

import { showTrace } from "./calls.js";
import { button, byId, calm, localMoment, make, moment } from "./dom.js";
import { turnTools } from "./edit.js";
import { byReading, data, drawable, elements, onChange, onNews, plain, select, shown, state } from "./state.js";

const text = byId("text");
const strip = byId("strip");
const passages = new Map();
const covering = new Map();
const ticks = new Map();
const turns = new Map();
const standIns = new Map();
const picker = byId("sections");

/** Build the text. What says the same as before stays, with what is selected in it. */
export function buildText() {
  readTurns();
  passages.clear();
  covering.clear();
  for (const ref of elements.keys()) passages.set(ref, []);
  const blocks = new Map([...text.children].map((each) => [each.dataset.start, each]));
  settle(text, data.text.map((each) => block(each, blocks.get(String(each.start)))));
  for (const each of text.querySelectorAll("mark")) {
    const refs = each.dataset.refs.split(" ");
    each.classList.remove("on", "hand");
    covering.set(each, refs.map((ref) => elements.get(ref)));
    for (const ref of refs) passages.get(ref).push(each);
  }
  whole = null;
  byId("name").textContent = byId("name").title = data.name;
  byId("size").textContent = `${data.length.toLocaleString("en")} characters`;
  picker.hidden = !data.sections.length;
  picker.replaceChildren(...data.sections.map(({ label, start }) => make("option", { value: start }, label)));
  showSection();
}
onNews(buildText);

/** Sort the parts of the text by the turns that they are of. A turn that corrects another stands in
    its place, of several the last that was not forgotten. */
function readTurns() {
  turns.clear();
  standIns.clear();
  const all = data.turns ?? [];
  for (const turn of all) if (turn.place !== null && !turn.forgotten) standIns.set(all[turn.place], turn);
  let at = 0;
  for (const part of all.length ? data.text.flatMap(({ parts }) => parts) : []) {
    while (part.start >= all[at + 1]?.start) at += 1;
    if (part.pieces) turns.set(part, all[at]);
  }
}

const partsOf = (turn) => [...turns.keys()].filter((part) => turns.get(part) === turn);

/** Let an element have these children; those that it has already are not moved. */
function settle(parent, children) {
  const wanted = new Set(children);
  for (const each of [...parent.childNodes]) if (!wanted.has(each)) each.remove();
  children.forEach((each, index) => parent.childNodes[index] === each || parent.insertBefore(each, parent.childNodes[index] ?? null));
}

picker.addEventListener("change", () => bringStart(Number(picker.value)));

/** The section selector says where the reader is: in the upper third, at the ends as far up or down as it goes. */
function showSection() {
  if (!data.sections.length) return;
  const [high, rest] = [text.clientHeight, text.scrollHeight - text.clientHeight - text.scrollTop];
  const down = text.scrollTop ? Math.max(Math.min(high * 0.35, text.scrollTop), high - rest) : 0;
  const line = text.getBoundingClientRect().top + down;
  const begun = [...text.children].findLast((each) => each.getBoundingClientRect().top <= line);
  const here = data.sections.findLast(({ start }) => start <= Number(begun?.dataset.start ?? 0));
  picker.value = (here ?? data.sections[0]).start;
}
text.addEventListener("scroll", () => requestAnimationFrame(showSection), { passive: true });

/** A block of the text, the one that was there where it is; parts that say the same keep their nodes. */
function block({ start, size, parts }, made = make("div", { "data-start": start })) {
  const known = made.drawn ?? new Map();
  made.drawn = new Map();
  made.className = `block s${size}`;
  for (const part of parts) {
    const turn = turns.get(part);
    const other = standIns.get(turn);
    const said = JSON.stringify([part, turn, other && [other, partsOf(other)], data.grows]);
    made.drawn.set(said, known.get(said) ?? drawPart(part, turn, other).filter((each) => each !== "").map(asNode));
  }
  settle(made, [...made.drawn.values()].flat());
  return made;
}

const asNode = (each) => (typeof each === "string" ? document.createTextNode(each) : each);

function drawPart(part, turn, other) {
  if (part.head !== undefined) return [make("h3", { class: "section", "data-start": part.start }, part.head)];
  if (part.heading) return [make("h3", { class: "heading", dir: "auto", "data-start": part.start }, ...part.heading.map(piece)), ...part.tail.map(piece)];
  if (!turn) return paragraph(part);
  if (turn.place !== null) return [];
  if (!other) return paragraph(part, turn);
  return part.start === turn.start ? partsOf(other).flatMap((each) => paragraph(each, other)) : [];
}

/** A paragraph; where a turn begins with it, with what stands beside and below that. */
function paragraph(part, turn = null) {
  const names = turn?.forgotten ? "forgotten" : [part.flow && "flow", part.follows && "follows"].filter(Boolean).join(" ");
  const [beside, below] = turn?.start === part.start ? aside(turn) : ["", ""];
  const words = make("p", { dir: "auto", class: names || null, "data-start": part.start }, ...part.pieces.map(piece));
  return [beside, part.pieces.length ? words : "", ...part.tail.map(piece), below];
}

/** When a turn was said, beside it, and below what can be done with it; neither is part of the text. */
function aside(turn) {
  const corrected = turn.corrected && !turn.forgotten ? make("span", { class: "corrected" }, "corrected ", localMoment(turn.corrected)) : "";
  const made = make("div", { class: "aside" }, turn.forgotten ? "forgotten" : "", corrected, turn.time ? moment(turn.time) : "");
  if (!data.grows || turn.forgotten) return [made, ""];
  const place = make("div", { class: "aside tools", hidden: true });
  const label = `Correct or forget turn ${turn.id}, ${turn.speaker}`;
  const toggle = (open) => {
    place.hidden = !open;
    more.setAttribute("aria-expanded", String(open));
    if (!open) return;
    const tools = turnTools(turn, String(findRange(turn.said, turn.end)));
    if (turn.is_reply) tools.append(button("Trace", () => showTrace(place, { turn: turn.id }, showRange)));
    place.replaceChildren(tools);
  };
  const more = button("⋯", () => toggle(place.hidden), { "aria-label": label, title: label, "aria-expanded": "false" });
  const close = (event) => {
    if (event.key !== "Escape" || place.hidden) return;
    event.stopPropagation();
    toggle(false);
    more.focus();
  };
  for (const each of [more, place]) each.addEventListener("keydown", close);
  made.append(more);
  return [made, place];
}

function piece(given) {
  if (typeof given === "string") return given;
  const [words, look, refs] = given;
  return make("mark", { class: look, "data-refs": refs.join(" ") }, words);
}

/** What is shown of some elements; that a hyperedge joins a node is said by either of the two.
    Categories stand on what they hold. */
const standing = (some) => {
  const seen = some.filter((each) => shown(each) && !each.layer);
  return plain(seen).length ? plain(seen) : seen;
};

/** All other elements that stand on some of the same characters. */
export function besides(element) {
  const found = new Set(passages.get(element.ref).flatMap((mark) => covering.get(mark)));
  found.delete(element);
  return standing([...found]);
}

/** Bring a place to the upper third; again while blocks that come into sight change their size. */
export function bring(target, tries = 6) {
  const box = text.getBoundingClientRect();
  const place = target.getBoundingClientRect();
  const wanted = Math.min(box.height * 0.3, Math.max(8, (box.height - place.height) / 2));
  text.scrollTop += place.top - box.top - wanted;
  if (tries > 0) requestAnimationFrame(() => bring(target, tries - 1));
}

export const bringElement = (element) => {
  const [first] = passages.get(element.ref);
  if (first) bring(first);
};

function bringStart(start) {
  const heads = [...text.querySelectorAll("[data-start]")];
  const found = heads.filter((each) => Number(each.dataset.start) <= start).pop();
  if (found) bring(found);
}

/** Mark a range of characters that need not be an element's, and bring it into sight. */
export function showRange(start, end) {
  const range = findRange(start, end);
  if (range) bringRange(range);
}

/** On a narrow screen the text is below. */
export function bringSource() {
  const { top } = byId("source").getBoundingClientRect();
  if (top > innerHeight / 2) byId("source").scrollIntoView({ behavior: calm ? "auto" : "smooth" });
}

const MOST_HITS = 1000;
let whole = null;

/** Lower case of the same length: "İ" alone would become two characters. */
const lowerCase = (words) => words.replaceAll("İ", "i").toLowerCase();

/** The text as one string, with the text nodes that it is made of and where each begins in it. */
function readWhole() {
  const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
  const [nodes, starts] = [[], []];
  let words = "";
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentElement.closest(".section, .aside")) continue;
    nodes.push(node);
    starts.push(words.length);
    words += node.data;
  }
  return { words, nodes, starts, lower: lowerCase(words) };
}

/** The number of the last text node that begins at a place of the string, or before it. */
function nodeAt(place) {
  const { starts } = whole;
  let [low, high] = [0, starts.length];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (starts[middle] <= place) low = middle;
    else high = middle;
  }
  return low;
}

/** A range of the text between two places of its string. */
function rangeOf(start, end) {
  const { nodes, starts } = whole;
  const range = document.createRange();
  const [first, last] = [nodeAt(start), nodeAt(end - 1)];
  range.setStart(nodes[first], start - starts[first]);
  range.setEnd(nodes[last], end - starts[last]);
  return range;
}

/** Where the text has what is searched for, marked there; each with some words around it. */
export function findInText(query) {
  CSS.highlights?.delete("hits");
  if (query.length < 2) return [];
  whole ??= readWhole();
  const wanted = lowerCase(query);
  const hits = [];
  for (let at = whole.lower.indexOf(wanted); at >= 0 && hits.length < MOST_HITS; at = whole.lower.indexOf(wanted, at + wanted.length)) {
    const end = at + wanted.length;
    hits.push({ range: rangeOf(at, end), before: whole.words.slice(Math.max(0, at - 40), at), words: whole.words.slice(at, end), after: whole.words.slice(end, end + 60) });
  }
  CSS.highlights?.set("hits", new Highlight(...hits.map(({ range }) => range)));
  return hits;
}

/** Bring a range of the text into sight, marked as a passage. */
export function bringRange(range) {
  CSS.highlights?.set("passage", new Highlight(range));
  bring({ getBoundingClientRect: () => range.getBoundingClientRect() });
}

function findRange(start, end) {
  const [first, last] = [findPoint(start), findPoint(end - 1, 1)];
  if (!first || !last) return null;
  const range = document.createRange();
  range.setStart(...first);
  range.setEnd(...last); // before the start, where a turn stands in the place of another: then it is empty
  if (range.collapsed) {
    range.setStart(...first);
    range.setEndAfter(first[0].parentElement.closest("p, h3, .block").lastChild);
  }
  return range;
}

/** The text node of a character, and its place there; `more` characters on. Paragraphs know where they begin. */
function findPoint(offset, more = 0) {
  const heads = [...text.querySelectorAll("p[data-start], .heading")];
  const begins = (each) => Number(each.dataset.start);
  const here = heads.reduce((best, each) => (begins(each) <= offset && begins(each) >= (best ? begins(best) : -1) ? each : best), null);
  const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
  walker.currentNode = here ?? text;
  let at = here ? begins(here) : 0;
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentElement.closest(".section, .aside")) continue;
    const signs = [...node.data];
    if (offset < at + signs.length) return [node, signs.slice(0, offset - at + more).join("").length];
    at += signs.length;
  }
  return null;
}

text.addEventListener("click", (event) => {
  const mark = event.target.closest("mark");
  if (!mark || String(getSelection())) return;
  const here = standing(covering.get(mark));
  const next = here[(here.indexOf(state.selected) + 1) % here.length];
  if (next) select(next, "text");
});

/** The next marked passage in reading order, from the selected one or from what is in sight. */
function move(way) {
  const order = standing([...elements.values()]).sort(byReading);
  if (!order.length) return;
  const from = order.indexOf(state.selected);
  const first = way > 0 ? 0 : order.length - 1;
  const next = from < 0 ? first : (from + way + order.length) % order.length;
  select(order[next]);
}
byId("before").addEventListener("click", () => move(-1));
byId("after").addEventListener("click", () => move(1));

/** Where in the text the graph stands, as a strip beside it. */
function paintStrip() {
  const [wide, high] = [strip.clientWidth, strip.clientHeight];
  if (!high) return;
  [strip.width, strip.height] = [wide * devicePixelRatio, high * devicePixelRatio];
  const pen = strip.getContext("2d");
  pen.scale(devicePixelRatio, devicePixelRatio);
  const style = getComputedStyle(document.documentElement);
  for (let index = 0; index < 8; index++) ticks.set(index, style.getPropertyValue(`--k${index}`));
  const place = (offset) => (offset / Math.max(1, data.length)) * high;
  const tick = (node, colour) => {
    pen.fillStyle = colour;
    pen.fillRect(2, place(node.start), wide - 4, Math.max(1.5, place(node.end) - place(node.start)));
  };
  const nodes = drawable.filter(shown);
  const rows = new Map(nodes.map((node) => [`${node.look.colour} ${Math.round(place(node.start))} ${Math.round(place(node.end))}`, node]));
  pen.globalAlpha = 0.6;
  for (const node of rows.values()) tick(node, ticks.get(node.look.colour));
  pen.globalAlpha = 1;
  if (nodes.includes(state.selected)) tick(state.selected, style.getPropertyValue("--ink"));
}
strip.addEventListener("click", (event) => {
  const box = strip.getBoundingClientRect();
  bringStart(((event.clientY - box.top) / box.height) * data.length);
});
new ResizeObserver(paintStrip).observe(strip);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paintStrip);

function mark(element, name, on) {
  for (const each of (element && passages.get(element.ref)) ?? []) each.classList.toggle(name, on);
}

onChange((before, origin) => {
  mark(before.hovered, "hand", false);
  mark(state.hovered, "hand", true);
  if (origin === "hover") return;
  mark(before.selected, "on", false);
  mark(state.selected, "on", true);
  for (const each of text.querySelectorAll("[aria-current]")) each.removeAttribute("aria-current");
  if (state.selected) passages.get(state.selected.ref)[0]?.setAttribute("aria-current", "true");
  const names = ["step", "hidden", "section", "noHubs", "only", "cited"];
  if (origin === "start" || names.some((name) => before[name] !== state[name])) {
    for (const [each, here] of covering) {
      each.classList.toggle("off", !here.some(shown));
      each.classList.toggle("cited", here.some((one) => state.cited.has(one)));
    }
  }
  paintStrip();
  if (state.selected && state.selected !== before.selected) {
    CSS.highlights?.delete("passage");
    if (origin !== "text") bringElement(state.selected);
  }
});
