// The log as a feed: each edit, the call that proposed it, and what became of both.

import { callPanel, opening, outcome, spent } from "./calls.js";
import { byId, button, fill, make, many, number, pairList, shorten } from "./dom.js";
import { api, fetchJson, live, load } from "./source.js";
import { data, findNode, onChange, select, state } from "./state.js";
import { showRange } from "./text.js";

const feed = byId("log");
const rows = byId("log-rows");
const which = byId("log-which");
let entries = null;

export async function openLog() {
  if (entries) return;
  entries = { edits: [], calls: [] };
  rows.replaceChildren(make("li", { class: "note" }, "Loading…"));
  try {
    entries.edits = (await load("log"))?.edits ?? [];
    if (live) entries.calls = (await load("calls")).calls;
  } catch (error) {
    rows.replaceChildren(make("li", { class: "wrong" }, error.message));
    entries = null;
    return;
  }
  which.querySelector("[value=calls]").hidden = !live;
  which.addEventListener("change", drawLog);
  drawLog();
}

function drawLog() {
  if (!entries) return;
  const all = which.value === "calls" ? entries.calls : entries.edits;
  const wanted = which.value === "rejected" ? all.filter(({ outcome }) => outcome === "rejected") : all;
  const found = state.query ? wanted.filter((each) => JSON.stringify(each).toLowerCase().includes(state.query)) : wanted;
  byId("log-count").textContent = many(found.length, which.value === "calls" ? "call" : "edit");
  rows.replaceChildren();
  fill(rows, found, which.value === "calls" ? callRow : editRow, 100);
}

const say = (value) => (typeof value === "string" ? value : JSON.stringify(value));
const given = (payload) => Object.entries(payload).filter(([, value]) => value !== null && value !== "");

function editRow(edit) {
  const words = given(edit.payload).map(([name, value]) => `${name} ${say(value)}`).join(" · ");
  const head = [
    make("small", {}, `step ${number.format(edit.chunk + 1)}`),
    " ",
    make("b", {}, edit.op),
    " ",
    outcome(edit.outcome),
    " ",
    make("span", { class: "words", dir: "auto" }, shorten(words, 160)),
  ];
  const more = () => [
    edit.reason ? make("p", { class: "reason" }, `${edit.outcome === "rejected" ? "Rejected" : "Repaired"}: ${edit.reason}`) : "",
    pairList(given(edit.payload).map(([name, value]) => [name, say(value)])),
    edit.quote ? make("blockquote", { dir: "auto", tabindex: 0 }, edit.quote) : "",
    make("div", { class: "acts" }, ...acts(edit)),
  ];
  return make("li", {}, opening(head, more));
}

function acts({ start, end, payload, call_key: key }) {
  const node = findNode(payload.id) ?? findNode(payload.node_id) ?? findNode(payload.name);
  return [
    start === null ? "" : button("Show in the text", () => showRange(start, end)),
    node ? button("Show in the graph", () => select(node)) : "",
    key && live ? button("The call that proposed it", (event) => showCall(key, event.target)) : "",
    key && !live ? make("span", { class: "note" }, "The call is not in this file.") : "",
  ];
}

function callRow(call) {
  const head = [
    make("b", {}, call.stage),
    " ",
    outcome(call.outcome),
    " ",
    make("small", {}, spent(call)),
  ];
  const more = () => {
    const place = make("div", {}, "…");
    showCall(call.key, place);
    return [place];
  };
  return make("li", {}, opening(head, more));
}

async function showCall(key, place) {
  try {
    const call = await fetchJson(api("memories", data.memory_id, "calls", key));
    place.replaceWith(callPanel(call));
  } catch (error) {
    place.replaceWith(make("p", { class: "wrong" }, error.message));
  }
}

onChange((before, origin) => {
  if (origin === "search" && !feed.hidden) drawLog();
});
