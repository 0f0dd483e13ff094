// All memories of the key's owner, the newest first.

import { byId, make, many, number } from "./dom.js";
import { fetchJson } from "./source.js";

const UNITS = [["year", 31556952], ["month", 2629746], ["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60]];
const ago = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

function age(time) {
  const seconds = (Date.parse(time) - Date.now()) / 1000;
  const [unit, length] = UNITS.find(([, each]) => Math.abs(seconds) >= each) ?? ["minute", 60];
  return make("time", { datetime: time, title: new Date(time).toLocaleString() }, ago.format(Math.round(seconds / length), unit));
}

function size({ turns, chunks, chunks_done: done, tokens, edits }) {
  const read = turns !== null ? many(turns, "turn") : chunks ? `${number.format(done)} of ${many(chunks, "chunk")}` : many(done, "step");
  return [read, tokens && turns === null ? many(tokens, "token") : "", many(edits, "edit")].filter(Boolean).join(", ");
}

const cost = ({ calls, input_tokens: read, output_tokens: written, seconds }) =>
  calls ? `${many(calls, "call")}, ${many(read + written, "token")}, ${number.format(Math.round(seconds))} s` : "no call";

const COLUMNS = ["Memory", "Kind", "Size", "Begun", "Cost", "Model"];

function row(each) {
  const name = make("a", { href: `memory?id=${encodeURIComponent(each.memory_id)}`, dir: "auto" }, each.document);
  const asked = each.questions.map((question) => make("small", { dir: "auto" }, question));
  const cells = [[name, ...asked], [each.memory], [size(each)], [age(each.created_at)], [cost(each)], [make("span", { class: "model" }, each.model)]];
  return make("tr", {}, ...cells.map((cell, index) => make("td", { "data-name": COLUMNS[index] }, ...cell)));
}

function drawList(all) {
  const query = byId("search").value.trim().toLowerCase();
  const words = (each) => [each.document, each.memory, each.model, ...each.questions].join(" ").toLowerCase();
  const found = all.filter((each) => words(each).includes(query));
  byId("total").textContent = query ? `${number.format(found.length)} of ${number.format(all.length)}` : many(all.length, "memory");
  const heads = make("tr", {}, ...COLUMNS.map((name) => make("th", { scope: "col" }, name)));
  const none = make("p", { class: "note" }, all.length ? "None fits." : "There is no memory yet: `mgl ask FILE QUESTION` builds one, `mgl chat NAME` starts one.");
  byId("list").replaceChildren(
    found.length ? make("table", {}, make("thead", {}, heads), make("tbody", {}, ...found.map(row))) : none,
  );
}

try {
  const { memories } = await fetchJson("/api/memories");
  byId("search").addEventListener("input", () => drawList(memories));
  drawList(memories);
} catch (error) {
  byId("list").replaceChildren(make("p", { class: "wrong", role: "alert" }, error.message));
}
document.documentElement.dataset.ready = "true";
