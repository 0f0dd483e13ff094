// The page of one memory. The address says what is open; what is opened is written to the address.

import { answered, buildAnswers, openCited } from "./answers.js";
import { camera, fit, stage } from "./camera.js";
import { buildKinds, buildPlaces, buildReplay, goTo } from "./controls.js";
import { deleteButton, renameButton } from "./delete.js";
import { hash } from "./detail.js";
import { button, byId, many } from "./dom.js";
import { buildGraph, paint } from "./graph.js";
import { openLog } from "./log.js";
import { buildFilters } from "./pointer.js";
import { api, fetchJson, live, whileSeen } from "./source.js";
import { categories, change, data, elements, hyperedges, onChange, plain, select, state, there } from "./state.js";
import { bringSource, buildText, showRange } from "./text.js";
import { hasTimes, isSparse } from "./timeline.js";
import "./tree.js";

const addresses = new Map();
for (const each of elements.values()) addresses.set(`${each.node ? "node" : "edge"}=${each.id}`, each);

function readAddress() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const step = Number.parseInt(wanted.get("step"), 10);
  if (Number.isFinite(step)) goTo(step - 1);
  const [start, end] = (wanted.get("at") ?? "").split("-").map(Number);
  if (end > start) {
    showRange(start, end);
    bringSource();
  }
  for (const kind of ["node", "edge"]) {
    if (wanted.has(kind)) select(addresses.get(`${kind}=${wanted.get(kind)}`) || null, "address");
  }
}

addEventListener("hashchange", readAddress);
onChange((before, origin) => {
  if (state.selected === before.selected || origin === "address") return;
  history.replaceState(null, "", state.selected ? hash(state.selected) : "#");
});

function count() {
  const now = (some) => some.filter(there).length;
  const areas = now(hyperedges);
  const edges = now(plain(data.edges));
  const said = [many(now(data.nodes) - areas - now(categories), "node")];
  if (areas) said.push(many(areas, "hyperedge"));
  if (categories.length) said.push(many(now(categories), "category"));
  if (edges || !areas) said.push(many(edges, "edge"));
  return said.join(", ");
}

const VIEWS = { graph: ["stage", "foot", "detail"], timeline: ["timeline", "detail"], log: ["log"] };

let view = "graph";

function show(wanted) {
  view = wanted;
  for (const id of new Set(Object.values(VIEWS).flat())) byId(id).hidden = !VIEWS[view].includes(id);
  for (const each of byId("views").children) each.setAttribute("aria-pressed", String(each.value === view));
  byId("filters").hidden = view === "log";
  if (view === "log") openLog();
  change({}, "view");
}

function buildViews() {
  byId("view-timeline").textContent = hasTimes ? "Timeline" : "Contents";
  onChange(() => (byId("detail").hidden = view === "log" || (view === "timeline" && !state.selected && !state.query)));
  byId("views").addEventListener("click", (event) => {
    if (event.target.value) show(event.target.value);
  });
}

const PLACE = "mgl-place";
const WATCHED = 4000; // milliseconds

/** Say that there is news, and show it when that is wanted, at the same place of the text. */
async function lookForNews() {
  const { version } = await fetchJson(api("memories", data.memory_id, "version"));
  if (version === data.version || byId("changed").querySelector("button")) return;
  const show = button("Show what is new", () => {
    sessionStorage.setItem(PLACE, byId("text").scrollTop);
    location.reload();
  });
  byId("changed").replaceChildren("This memory has changed. ", show);
}

const tell = (message) => {
  if (!byId("changed").querySelector("button")) byId("changed").textContent = message;
};

function returnToPlace() {
  const place = sessionStorage.getItem(PLACE);
  sessionStorage.removeItem(PLACE);
  if (place !== null) byId("text").scrollTop = Number(place);
  return place !== null;
}

document.title = `${data.name} · mgl`;
byId("back").hidden = !live;
if (live) {
  byId("about").after(deleteButton(data.memory_id, data.name, () => location.assign("./")));
  const showRenamed = () => location.assign(`memory?id=${data.memory_id}`);
  byId("about").after(renameButton(data.memory_id, data.name, data.turns !== null, showRenamed));
}
byId("title").textContent = data.name;
byId("about").textContent = [data.memory, data.model, count(), `memory ${data.memory_id}`].join(" · ");
buildGraph();
buildText();
buildAnswers();
buildKinds();
buildPlaces();
buildReplay();
buildFilters();
buildViews();
new ResizeObserver(() => {
  if (camera.fitted) fit();
  paint();
}).observe(stage);
if (isSparse) show("timeline");
fit();
change(answered(), "start");
if (!returnToPlace() && location.hash.length < 2) openCited();
if (live) whileSeen(WATCHED, lookForNews, tell);
readAddress();
document.documentElement.dataset.ready = "true";
