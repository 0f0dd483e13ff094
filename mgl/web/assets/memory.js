// The page of one memory. The address says what is open; what is opened is written to the address.

import { answered, buildAnswers, openCited } from "./answers.js";
import { camera, fit, stage } from "./camera.js";
import { buildKinds, buildPlaces, buildReplay, goTo, isReplaying } from "./controls.js";
import { deleteButton, renameButton } from "./delete.js";
import { hash } from "./detail.js";
import { byId, many } from "./dom.js";
import { buildGraph, paint } from "./graph.js";
import { openLog } from "./log.js";
import { buildFilters } from "./pointer.js";
import { live, whileSeen } from "./source.js";
import { categories, change, data, elements, hyperedges, onChange, onNews, plain, renew, select, state, there } from "./state.js";
import { bringSource, buildText, showRange } from "./text.js";
import { buildTimeline, hasTimes, isSparse } from "./timeline.js";
import { buildTree } from "./tree.js";

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
    if (wanted.has(kind)) select([...elements.values()].find((each) => each.node === (kind === "node") && each.id === wanted.get(kind)) ?? null, "address");
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
  byId("view-timeline").textContent = hasTimes() ? "Timeline" : "Contents";
  onChange(() => (byId("detail").hidden = view === "log" || (view === "timeline" && !state.selected && !state.query)));
  byId("views").addEventListener("click", (event) => {
    if (event.target.value) show(event.target.value);
  });
}

const WATCHED = 4000; // milliseconds

/** Show what is new, unless the reader is at something that would be lost. */
async function lookForNews() {
  const isBusy = isReplaying() || document.querySelector("dialog[open], #text form, #detail form, #send:disabled");
  if (!isBusy && (await renew())) byId("said").textContent = "The page shows what is new.";
}

const tell = (message) => (byId("changed").textContent = message);

/** Name the memory, and say how large it is. */
function nameMemory() {
  document.title = `${data.name} · mgl`;
  byId("title").textContent = data.name;
  byId("about").textContent = [data.memory, data.model, count(), `memory ${data.memory_id}`].join(" · ");
}
onNews(nameMemory);

byId("back").hidden = !live;
if (live) {
  byId("about").after(deleteButton(data.memory_id, data.name, () => location.assign("./")));
  const showRenamed = () => location.assign(`memory?id=${data.memory_id}`);
  byId("about").after(renameButton(data.memory_id, data.name, data.turns !== null, showRenamed));
}
nameMemory();
buildGraph();
buildText();
buildTree();
buildTimeline();
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
if (isSparse()) show("timeline");
fit();
change(answered(), "start");
if (location.hash.length < 2) openCited();
if (live) whileSeen(WATCHED, lookForNews, tell);
readAddress();
document.documentElement.dataset.version = data.version ?? "";
document.documentElement.dataset.ready = "true";
