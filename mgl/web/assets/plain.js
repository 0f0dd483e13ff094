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

const tableRow = (heads) => ([first, ...cells]) =>
  make(
    "tr",
    {},
    make("th", { scope: "row", dir: "auto" }, ...first),
    ...cells.map((cell, index) => make("td", { "data-name": heads[index + 1] }, make("div", { dir: "auto" }, ...cell))),
  );

/** A table whose rows are cards on a narrow screen; a cell is a list of what stands in it. */
export function table(heads, rows) {
  const head = make("tr", {}, ...heads.map((name) => make("th", { scope: "col" }, name)));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows.map(tableRow(heads))));
}

const A_PAGE = 50;
const order = new Intl.Collator("en", { numeric: true });

/** What has a key comes first, whichever way the rest is sorted. */
function compare(one, other, way) {
  if (one === undefined || other === undefined) return (one === undefined) - (other === undefined);
  return way * (typeof one === "number" ? one - other : order.compare(one, other));
}

/** A table that is searched, sorted, filtered and shown by pages. `keys` has for each head what its
    rows are sorted by, if anything; `kinds` names a filter, and says what an item is for it.
    Returns a line of controls, the table, and `update`, which takes other items. */
export function listTable(all, { noun, heads, row, empty, keys = [], kinds = null }) {
  const search = make("input", { id: "search", type: "search", placeholder: "Filter", "aria-label": "Filter the list", autocomplete: "off" });
  const total = make("output", { for: "search" });
  const kind = make("select", { "aria-label": kinds?.name ?? "", hidden: !kinds });
  const sorting = make("select", { class: "narrow", "aria-label": "Sort by" });
  const before = button("Previous", () => turn(-1));
  const after = button("Next", () => turn(1));
  const pages = make("span", { class: "pages", role: "group", "aria-label": "Pages", hidden: true }, before, after);
  const line = make("p", { class: "line" }, search, kind, sorting, total, pages);
  const none = make("p", { class: "note" }, empty);
  const made = table(heads, []);
  const body = made.querySelector("tbody");
  const names = [...made.querySelectorAll("thead th")];
  const rows = new Map();
  let [items, by, way, page] = [all, null, 1, 0];

  const rowOf = (item) => {
    if (!rows.has(item)) rows.set(item, tableRow(heads)(row(item)));
    return rows.get(item);
  };
  const turn = (step) => {
    page += step;
    look();
  };
  const sort = (column) => {
    [by, way] = by === column ? [column, -way] : [column, 1];
    turn(-page);
  };

  function look() {
    const query = search.value.trim().toLowerCase();
    let found = items.filter((item) => !kind.value || kinds.of(item) === kind.value);
    found = found.filter((item) => rowOf(item).textContent.toLowerCase().includes(query));
    if (by !== null) found.sort((one, other) => compare(keys[by](one), keys[by](other), way));
    page = Math.max(0, Math.min(page, Math.ceil(found.length / A_PAGE) - 1));
    const [first, last] = [page * A_PAGE, Math.min(found.length, (page + 1) * A_PAGE)];
    body.replaceChildren(...found.slice(first, last).map(rowOf));
    const paged = found.length > A_PAGE;
    const part = paged ? `${number.format(first + 1)}–${number.format(last)} of ` : found.length < items.length ? `${number.format(found.length)} of ` : "";
    total.textContent = part + (found.length < items.length && !paged ? number.format(items.length) : many(found.length, noun));
    pages.hidden = !paged;
    [before.disabled, after.disabled] = [page === 0, last === found.length];
    names.forEach((name, column) => {
      if (keys[column]) name.setAttribute("aria-sort", by !== column ? "none" : way > 0 ? "ascending" : "descending");
    });
    sorting.value = by === null ? "" : `${by} ${way}`;
    for (const each of [line, made]) each.hidden = !items.length;
    none.hidden = items.length > 0;
  }

  function update(now) {
    items = now;
    rows.clear();
    const chosen = kind.value;
    const of = [...new Set(kinds ? items.map(kinds.of) : [])].sort();
    const option = (value, name) => make("option", { value }, name);
    kind.replaceChildren(option("", kinds?.all ?? ""), ...of.map((name) => option(name, name)));
    kind.value = of.includes(chosen) ? chosen : "";
    look();
  }

  sorting.append(make("option", { value: "" }, "as they come"));
  heads.forEach((name, column) => {
    if (!keys[column]) return;
    names[column].replaceChildren(button(name, () => sort(column), { class: "sort" }));
    sorting.append(make("option", { value: `${column} 1` }, `${name}, ascending`), make("option", { value: `${column} -1` }, `${name}, descending`));
  });
  sorting.addEventListener("change", () => {
    [by, way] = sorting.value ? sorting.value.split(" ").map(Number) : [null, 1];
    turn(-page);
  });
  search.addEventListener("input", () => turn(-page));
  kind.addEventListener("change", () => turn(-page));
  update(all);
  return { line, parts: [none, line, made], update };
}

const UNITS = [["year", 31556952], ["month", 2629746], ["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60]];
const A_DAY = 86400;
const ago = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** How long ago a time is, and from a day on the date. */
export function age(time) {
  const seconds = (Date.parse(time) - Date.now()) / 1000;
  const [unit, length] = UNITS.find(([, each]) => Math.abs(seconds) >= each) ?? ["minute", 60];
  const day = length >= A_DAY ? make("small", {}, new Date(time).toLocaleDateString("en-GB", { dateStyle: "medium" })) : "";
  return make("time", { datetime: time, title: new Date(time).toLocaleString() }, ago.format(Math.round(seconds / length), unit), day);
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
