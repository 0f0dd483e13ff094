// What a memory holds, in the order of its text: its sessions, pages or chapters, with what was
// noted and cited of each, and the time between sessions.

import { link } from "./detail.js";
import { byId, button, make, many, shorten } from "./dom.js";
import { byReading, data, drawable, elements, matches, onChange, onNews, select, shown, state } from "./state.js";
import { showRange } from "./text.js";

const timeline = byId("timeline");
const DAY = 24 * 60 * 60 * 1000;
const FEW = 4; // nodes, below which a graph says little
const SOME = 12; // nodes of a section, of those that are no topics
let sections = [];
let told = new Map();

/** Whether there is anything but a graph to show. */
export const hasTimes = () => data.sections.some(({ day }) => day);
export const isSparse = () => drawable.length < FEW;

/** Where the topic's last turn was said, if that is another session. */
function lasts(node) {
  const last = data.sections.find(({ start, end }) => start < node.end && node.end <= end);
  return last && last !== node.section ? `until ${last.label}` : "";
}

function between(one, other) {
  const days = Math.round((Date.parse(other) - Date.parse(one)) / DAY);
  if (!(days > 1)) return "";
  return days < 14 ? `${days} days later` : days < 60 ? `${Math.round(days / 7)} weeks later` : `${Math.round(days / 30.4)} months later`;
}

const lies = ({ start }) => sections.find((each) => each.start <= start && start < each.end) ?? sections[0];
const liesNode = (node) => node.section ?? sections[0];

export function buildTimeline() {
  sections = data.sections.length ? data.sections : [{ label: data.name, start: 0, end: data.length }];
  const turns = (data.turns ?? []).filter(({ forgotten }) => !forgotten);
  told = Map.groupBy(turns, (turn) => lies(turn.place === null ? turn : data.turns[turn.place]));
}
onNews(buildTimeline);

function nodeRow(node) {
  const until = lasts(node);
  return make(
    "li",
    { class: [matches(node) ? "" : "dim", state.cited.has(node) ? "cited" : "", node === state.selected ? "on" : ""].join(" ").trim() || null },
    link(node),
    until ? make("small", {}, until) : "",
    node.content && !node.content.endsWith(node.label) ? make("p", { dir: "auto" }, node.content) : "",
  );
}

function citedRow({ quote, start, end, question }) {
  const made = button(`“${shorten(quote, 140)}”`, () => showRange(start, end), { class: "quote", dir: "auto", title: "Show in the text" });
  return make("li", {}, made, make("small", { dir: "auto" }, `cited for “${shorten(question, 70)}”`));
}

/** What the answers cite that no node in sight stands for, each passage once. */
function listCited(nodes) {
  const all = data.answers.flatMap(({ question, citations }) => citations.map((each) => ({ ...each, question })));
  const ids = new Set(nodes.map(({ id }) => id));
  const places = new Map(all.filter(({ node_id: id }) => !ids.has(id)).map((each) => [`${each.start} ${each.end}`, each]));
  return [...places.values()].sort(byReading);
}

function drawTimeline() {
  if (timeline.hidden) return timeline.replaceChildren(); // what it had may be deleted
  const nodes = drawable.filter(shown).sort(byReading);
  const noted = Map.groupBy(nodes, liesNode);
  const cited = Map.groupBy(listCited(nodes), lies);
  let last = null;
  const rows = sections.map((section) => {
    const here = noted.get(section) ?? [];
    const turns = told.get(section)?.length;
    const gap = last && section.day ? between(last, section.day) : "";
    last = section.day || last;
    const counts = [turns && many(turns, "turn"), here.length && many(here.length, here[0].look.name === "topic" ? "topic" : "node")];
    const head = button(section.label, () => showRange(section.start, section.start + 1), { dir: "auto", title: "Show in the text" });
    const row = make(
      "li",
      {},
      make("h3", {}, head, " ", make("small", {}, counts.filter(Boolean).join(", "))),
      make("ul", {}, ...here.slice(0, SOME).map(nodeRow), here.length > SOME ? make("li", { class: "note" }, `and ${many(here.length - SOME, "more node")}`) : "", ...(cited.get(section) ?? []).map(citedRow)),
    );
    return [gap ? make("li", { class: "gap" }, gap) : "", row];
  });
  timeline.replaceChildren(make("ol", {}, ...rows.flat()));
}

timeline.addEventListener("click", (event) => {
  const made = event.target.closest("a[data-ref]");
  if (!made) return;
  event.preventDefault();
  select(elements.get(made.dataset.ref), "timeline");
});

onChange((before, origin) => {
  if (origin !== "hover") drawTimeline();
});
