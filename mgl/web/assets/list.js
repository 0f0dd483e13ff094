// All memories of the key's owner, the newest first.

import { addingForm, jobRows } from "./adding.js";
import { deleteButton } from "./delete.js";
import { make, many, number } from "./dom.js";
import { age, openPage, searchTable } from "./plain.js";
import { api, fetchJson } from "./source.js";

function size({ turns, chunks, chunks_done: done, tokens, edits }) {
  const read = turns !== null ? many(turns, "turn") : chunks ? `${number.format(done)} of ${many(chunks, "chunk")}` : many(done, "step");
  return [read, tokens && turns === null ? many(tokens, "token") : "", many(edits, "edit")].filter(Boolean).join(", ");
}

const cost = ({ calls, input_tokens: read, output_tokens: written, seconds }) =>
  calls ? `${many(calls, "call")}, ${many(read + written, "token")}, ${number.format(Math.round(seconds))} s` : "no call";

const COLUMNS = ["Memory", "Kind", "Size", "Begun", "Cost", "Model", "Delete"];

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

await openPage("./", "Memories", "/api/memories", async ({ memories }) => {
  const found = make("div", {});
  const show = (all) => found.replaceChildren(...searchTable(all, "memory", COLUMNS, row, NONE));
  const renew = async () => show((await fetchJson("/api/memories")).memories);
  const rows = make("ul", { id: "jobs", "aria-label": "Files that are read" });
  rows.append(...jobRows((await fetchJson("/api/jobs")).jobs, renew));
  show(memories);
  return [make("div", { class: "line adding" }, beginForm(), addingForm(rows, renew)), rows, found];
});
