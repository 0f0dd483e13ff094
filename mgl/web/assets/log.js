// The log as a feed: each edit, the call that proposed it, and what became of both.

import { callPanel, opening, outcome, spent } from "./calls.js";
import { diff } from "./diff.js";
import { byId, button, fill, make, many, number, pairList, shorten } from "./dom.js";
import { api, fetchJson, live, load } from "./source.js";
import { data, findNode, onChange, onNews, renew, select, state } from "./state.js";
import { showRange } from "./text.js";

const feed = byId("log");
const rows = byId("log-rows");
const which = byId("log-which");
let entries = null;

export async function openLog() {
  if (entries) return;
  entries = { edits: [], calls: [] };
  if (!rows.childElementCount) rows.replaceChildren(make("li", { class: "note" }, "Loading…"));
  try {
    entries.edits = (await load("log"))?.edits ?? [];
    compareAll(entries.edits);
    if (live) entries.calls = (await load("calls")).calls;
  } catch (error) {
    rows.replaceChildren(make("li", { class: "wrong" }, error.message));
    entries = null;
    return;
  }
  which.querySelector("[value=calls]").hidden = !live;
  drawLog();
}
which.addEventListener("change", drawLog);

/** Read the log anew, and leave open what is open. */
onNews(async () => {
  entries = null;
  if (feed.hidden) return rows.replaceChildren();
  const [open, top] = [[...rows.children].map((row) => row.firstChild?.open), feed.scrollTop];
  await openLog();
  for (const [index, row] of [...rows.querySelectorAll(":scope > li > details")].entries()) row.open = Boolean(open[index]);
  feed.scrollTop = top;
});

function drawLog() {
  if (!entries) return;
  const all = which.value === "calls" ? entries.calls : entries.edits;
  const wanted = which.value === "rejected" ? all.filter(({ outcome }) => outcome === "rejected") : all;
  const found = state.query ? wanted.filter((each) => JSON.stringify(each).toLowerCase().includes(state.query)) : wanted;
  byId("log-count").textContent = many(found.length, which.value === "calls" ? "call" : "edit");
  rows.replaceChildren();
  if (which.value === "calls") fill(rows, found, callRow, 100);
  else fill(rows, fold(found), (run) => (run.length > 1 ? runRow(run) : editRow(run[0])), 100);
}

const AT_LEAST = 3; // edits that are folded into one row
const isPlain = ({ op, outcome, payload }) => op === "append" && outcome === "applied" && Object.values(payload).every((value) => typeof value === "number");

/** Runs of edits that only say that a turn came are one row. */
function fold(edits) {
  const runs = [];
  for (const edit of edits) {
    const last = runs.at(-1);
    if (last && isPlain(edit) && isPlain(last[0])) last.push(edit);
    else runs.push([edit]);
  }
  return runs.flatMap((run) => (run.length >= AT_LEAST ? [run] : run.map((edit) => [edit])));
}

function runRow(run) {
  const [first, last] = [run[0], run.at(-1)].map(({ chunk }) => number.format(chunk + 1));
  const head = [make("small", {}, `steps ${first} to ${last}`), " ", make("b", {}, called(run[0])), " ", make("span", { class: "words" }, many(run.length, "edit"))];
  const more = () => {
    const list = make("ol", { class: "run" });
    fill(list, run, editRow, 100);
    return [list];
  };
  return make("li", {}, opening(head, more));
}

/** What an edit says of a node: its id, and the node's fields. */
function subject({ payload }) {
  const fields = typeof payload.topic === "object" && payload.topic ? payload.topic : payload;
  const id = typeof payload.topic === "string" ? payload.topic : (fields.id ?? fields.node_id ?? fields.name);
  return [id, fields];
}

/** Note of each edit what an earlier one said of the same node. */
function compareAll(edits) {
  const known = new Map();
  for (const edit of edits) {
    const [id, fields] = subject(edit);
    if (id === undefined || edit.outcome === "rejected") continue;
    edit.was = known.get(id);
    known.set(id, { ...edit.was, ...fields });
  }
}

/** The fields whose words an edit changed, with what changed of them. */
function changes(edit) {
  const [, fields] = subject(edit);
  const words = (value) => (Array.isArray(value) ? value.join(", ") : value);
  const changed = ([name, value]) => typeof words(value) === "string" && typeof words(edit.was?.[name]) === "string" && words(value) !== words(edit.was[name]);
  return Object.entries(fields).filter(changed).map(([name, value]) => make("p", { class: "diff", dir: "auto" }, make("small", {}, `${name}: `), ...diff(words(edit.was[name]), words(value))));
}

/** Why an edit that a person can make has no way back. */
const LASTING = {
  merge: "A merge cannot be undone: the log does not keep apart what belonged to the two.",
  forget: "A deletion cannot be undone: the words are gone.",
  unlink: "A removed link cannot be undone: links are drawn by the memory alone.",
};

/** Take back what a person changed of a topic, or say why that cannot be. */
function undo(edit) {
  const { op, payload, was, outcome } = edit;
  if (!data.grows || outcome === "rejected") return "";
  if (LASTING[op]) return make("span", { class: "note" }, LASTING[op]);
  if (data.memory !== "gam" || !findNode(payload.topic)) return "";
  const body = { topic: payload.topic };
  if (op === "rewrite" && was?.summary) Object.assign(body, { summary: was.summary, keywords: was.keywords });
  else if (op === "freeze") body.frozen = !payload.frozen;
  else return "";
  return button("Undo", async (event) => {
    try {
      await fetchJson(api("memories", data.memory_id, "edit"), body);
      await renew();
    } catch (error) {
      event.target.replaceWith(make("span", { class: "wrong", role: "alert" }, error.message));
    }
  });
}

const isText = (value) => typeof value === "string";
const TURNS = new Set(["turn", "turns", "through", "boundaries", "masked"]); // fields that hold numbers of turns
const BESIDE = new Set(["quote", "span", "mention", "marks"]); // fields that are shown beside the others, or are numbers alone
const called = ({ op, payload }) => (payload.frozen === false ? "unfreeze" : op.replaceAll("_", " "));

/** A value in words: what it holds by its names, without what is empty. */
function say(value) {
  if (Array.isArray(value)) return value.map(say).filter(Boolean).join(", ");
  if (value === null || typeof value !== "object") return value === null || value === false ? "" : `${value}`;
  return given(value).map(([name, said]) => `${name} ${said}`).join(", ");
}

/** What an edit says, in words, with the fields of a topic among the others. */
function given({ topic, ...rest }) {
  const fields = isText(topic) || !topic ? { topic, ...rest } : { ...topic, ...rest };
  const read = (name, value) => {
    if (name === "spans") return value.map((at) => (Array.isArray(at) ? at : [at.start, at.end]).join("–"));
    return TURNS.has(name) && data.turns ? [value].flat().map((at) => data.turns[at]?.id ?? at) : value;
  };
  const named = ([name, value]) => [name.replaceAll("_", " "), say(read(name, value ?? ""))];
  return Object.entries(fields).filter(([name]) => !BESIDE.has(name)).map(named).filter(([, said]) => said);
}

function editRow(edit) {
  const words = given(edit.payload).map(([name, said]) => `${name} ${said}`).join(" · ");
  const head = [
    make("small", {}, `step ${number.format(edit.chunk + 1)}`),
    " ",
    make("b", {}, called(edit)),
    " ",
    outcome(edit.outcome),
    " ",
    make("span", { class: "words", dir: "auto" }, shorten(words, 160)),
  ];
  const more = () => [
    edit.reason ? make("p", { class: "reason" }, `${edit.outcome === "rejected" ? "Rejected" : "Repaired"}: ${edit.reason}`) : "",
    ...changes(edit),
    pairList(given(edit.payload)),
    edit.quote ? make("blockquote", { dir: "auto", tabindex: 0 }, edit.quote) : "",
    opening(["As it is stored"], () => [make("pre", { dir: "auto", tabindex: 0 }, JSON.stringify(edit.payload, null, 2))]),
    make("div", { class: "acts" }, ...acts(edit), undo(edit)),
  ];
  return make("li", {}, opening(head, more));
}

function acts({ start, end, payload, call_key: key }) {
  const node = findNode(payload.topic?.id ?? payload.topic) ?? findNode(payload.id) ?? findNode(payload.node_id) ?? findNode(payload.name);
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
