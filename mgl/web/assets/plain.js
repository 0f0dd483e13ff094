// What the pages beside a memory's have in common: the ways between them, tables, the search.

import { button, byId, draw, make, many, number } from "./dom.js";
import { fetchJson } from "./source.js";

const PLACES = [["./", "Memories"], ["runs", "Evaluations"], ["trainings", "Trainings"]];

/** Fetch what a page shows, and show it; `here` is the place that it is, or belongs to. */
export async function openPage(here, title, path, show) {
  const way = ([href, name]) => make("a", { href, "aria-current": href === here && "page" }, name);
  byId("ways").append(...PLACES.map(way));
  byId("title").textContent = title;
  document.title = `${title} · mgl`;
  const list = byId("list");
  const attempt = async () => {
    list.replaceChildren(make("p", { class: "note" }, "Loading…"));
    try {
      list.replaceChildren(...(await show(await fetchJson(path))));
    } catch (error) {
      list.replaceChildren(make("p", { class: "wrong", role: "alert" }, error.message), button("Try again", attempt));
    }
  };
  await attempt();
  document.documentElement.dataset.ready = "true";
}

/** A table whose rows are cards on a narrow screen; a cell is a list of what stands in it. */
export function table(heads, rows) {
  const head = make("tr", {}, ...heads.map((name) => make("th", { scope: "col" }, name)));
  const row = ([first, ...cells]) =>
    make(
      "tr",
      {},
      make("th", { scope: "row", dir: "auto" }, ...first),
      ...cells.map((cell, index) => make("td", { "data-name": heads[index + 1] }, make("div", { dir: "auto" }, ...cell))),
    );
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows.map(row)));
}

/** A table of which the rows are shown that have what is searched for. */
export function searchTable(all, noun, heads, row, empty) {
  if (!all.length) return [make("p", { class: "note" }, empty)];
  const search = make("input", { id: "search", type: "search", placeholder: "Search", "aria-label": "Search", autocomplete: "off" });
  const total = make("output", { for: "search" });
  const found = table(heads, all.map(row));
  const rows = [...found.querySelectorAll("tbody tr")];
  const look = () => {
    const query = search.value.trim().toLowerCase();
    for (const each of rows) each.hidden = !each.textContent.toLowerCase().includes(query);
    const count = rows.filter((each) => !each.hidden).length;
    total.textContent = query ? `${number.format(count)} of ${number.format(all.length)}` : many(all.length, noun);
  };
  search.addEventListener("input", look);
  look();
  return [make("p", { class: "line" }, search, " ", total), found];
}

const UNITS = [["year", 31556952], ["month", 2629746], ["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60]];
const ago = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

export function age(time) {
  const seconds = (Date.parse(time) - Date.now()) / 1000;
  const [unit, length] = UNITS.find(([, each]) => Math.abs(seconds) >= each) ?? ["minute", 60];
  return make("time", { datetime: time, title: new Date(time).toLocaleString() }, ago.format(Math.round(seconds / length), unit));
}

export const percent = (value) => (value === null ? "–" : (100 * value).toFixed(1));

/** An interval of a share, with its mean, on a line from 0 to 1. */
export function span([low, mean, high]) {
  const line = (name, d) => draw("path", { class: name, d });
  return draw(
    "svg",
    { class: "span", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    line("whole", "M0 5H100M0 1V9M100 1V9"),
    line("reach", `M${100 * low} 5H${100 * high}`),
    line("mean", `M${100 * mean} 0V10`),
  );
}

/** The row, of six cells, of what could not be read. */
export const faultRow = ({ name, fault }) => [[name], ["–"], [make("span", { class: "wrong" }, fault)], ["–"], ["–"], ["–"]];
