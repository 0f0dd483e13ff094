// All memories of the key's owner, the newest first.

import { addingForm, jobRows } from "./adding.js";
import { deleteButton } from "./delete.js";
import { make, many, moment, number, shorten } from "./dom.js";
import { age, listTable, openPage } from "./plain.js";
import { api, fetchJson, whileSeen } from "./source.js";

function size({ turns, chunks, chunks_done: done, tokens, edits }) {
  const some = chunks ? `${number.format(done)} of ${many(chunks, "chunk")}` : many(done, "step");
  const read = turns !== null ? many(turns, "turn") : chunks && done >= chunks ? "read to the end" : some;
  return [read, tokens && turns === null ? many(tokens, "token") : "", many(edits, "edit")].filter(Boolean).join(", ");
}

/** Without seconds: calls run side by side, so that their sum is no time that anybody waited. */
const cost = ({ calls, input_tokens: read, output_tokens: written }) =>
  calls ? `${many(calls, "call")}, ${number.format(read)} tokens read, ${number.format(written)} written` : "none";

const MOST_FOUND = 50;
const COLUMNS = ["Memory", "Kind", "Size", "Begun", "Model calls", "Model", "Delete"];

const KEYS = [
  ({ document }) => document,
  ({ memory }) => memory,
  ({ edits }) => edits,
  ({ created_at: begun }) => begun,
  ({ input_tokens: read, output_tokens: written }) => read + written,
  ({ model }) => model,
];
const RENEWED = 10000; // milliseconds

function row(each) {
  const name = make("a", { href: `memory?id=${encodeURIComponent(each.memory_id)}` }, each.document);
  const asked = each.questions.map((question) => make("small", { dir: "auto" }, question));
  return [[name, ...asked], [each.memory], [size(each)], [age(each.created_at)], [cost(each)], [make("span", { class: "model" }, each.model)], [deleteButton(each.memory_id, each.document, () => location.reload())]];
}

const NONE = "There is no memory yet: `mgl ask FILE QUESTION` builds one; begin a conversation here, or with `mgl chat NAME`.";

/** A new conversation is opened empty; one that is there, as it is. */
function beginForm() {
  const name = make("input", { id: "begin", required: true, pattern: "[^\\/]+", title: "without a slash", maxlength: 200, autocomplete: "off", placeholder: "Name" });
  const wrong = make("span", { class: "wrong", role: "alert" });
  const form = make("form", { class: "line begin" }, make("label", { for: "begin" }, "New conversation"), name, make("button", {}, "Begin"), wrong);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await fetchJson(api("conversations", name.value.trim(), "turns"), { turns: [] });
      location.assign(`memory?id=${encodeURIComponent(name.value.trim())}`);
    } catch (error) {
      wrong.textContent = error.message;
    }
  });
  return form;
}

/** A passage that was found, with a link that opens its memory there. */
function hitRow({ memory_id: id, document: name, memory, start, end, quote, speaker, time, session, chapter, page }) {
  const where = time ? moment(time, true) : (chapter ?? (page && `page ${page}`) ?? session ?? "");
  const link = make("a", { href: `memory?id=${id}#at=${start}-${end}`, dir: "auto" }, name);
  return make("li", {}, link, " ", make("small", {}, memory, " · ", where), make("p", { dir: "auto" }, speaker ? make("b", {}, `${speaker}: `) : "", shorten(quote, 300)));
}

/** A box that searches all that was said or read; the address keeps the words. */
function searchForm() {
  const input = make("input", { id: "words", type: "search", required: true, "aria-label": "Search what was said", placeholder: "Search what was said", autocomplete: "off" });
  const hits = make("ol", { class: "hits", "aria-label": "Passages found" });
  const said = make("p", { class: "note", role: "status" });
  const form = make("form", { class: "line searching", role: "search" }, input, make("button", {}, "Search all"));
  const look = async () => {
    const words = input.value.trim();
    history.replaceState(null, "", words ? `?${new URLSearchParams({ q: words })}` : "./");
    hits.replaceChildren();
    said.textContent = words ? "Searching…" : "";
    if (!words) return;
    try {
      const { results } = await fetchJson(`/api/search?${new URLSearchParams({ q: words, limit: MOST_FOUND })}`);
      said.textContent = results.length < MOST_FOUND ? many(results.length, "passage") : `the first ${MOST_FOUND} passages`;
      hits.append(...results.map(hitRow));
    } catch (error) {
      said.textContent = error.message;
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    look();
  });
  input.value = new URLSearchParams(location.search).get("q") ?? "";
  if (input.value) look();
  return [form, said, hits];
}

await openPage("./", "Memories", "/api/memories", async ({ memories }) => {
  const kinds = { name: "Kind of memory", all: "all kinds", of: ({ memory }) => memory };
  const { parts, update } = listTable(memories, { noun: "memory", heads: COLUMNS, row, empty: NONE, keys: KEYS, kinds });
  let known = JSON.stringify(memories);
  const renew = async () => {
    const { memories: now } = await fetchJson("/api/memories");
    if (JSON.stringify(now) === known) return;
    known = JSON.stringify(now);
    update(now);
  };
  const stale = make("p", { class: "wrong", role: "status" });
  whileSeen(RENEWED, renew, (message) => (stale.textContent = message));
  const rows = make("ul", { id: "jobs", "aria-label": "Files that are read" });
  rows.append(...jobRows((await fetchJson("/api/jobs")).jobs, renew));
  return [...searchForm(), make("div", { class: "line adding" }, beginForm(), addingForm(rows, await fetchJson("/api/kinds"), renew)), stale, rows, ...parts];
});
