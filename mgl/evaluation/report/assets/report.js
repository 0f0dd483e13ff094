// The questions of each chapter as a list, to be filtered, searched, and compared by two methods.
"use strict";

const PAGE = 50;
const MARKS = { r: ["✓", "right"], w: ["✗", "wrong"], f: ["!", "failed"], u: ["?", "without a score"] };
const ID = 0, SOURCE = 1, CATEGORY = 2, QUESTION = 3, GOLD = 4, ANSWERS = 5;

const make = (name, text = "", attributes = {}) => {
  const element = document.createElement(name);
  if (text) element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};
const isRight = (answer) => answer?.[0] === "r";
const fill = (select, names, of = (n) => n) =>
  select.append(...names.map((name, n) => make("option", name || "–", { value: of(n) })));

/** Whether a row has what the form asks for. */
function matches(row, form, text) {
  const answers = row[ANSWERS];
  const { category, source, verdict, method, one, other } = form;
  if (category.value && row[CATEGORY] !== +category.value) return false;
  if (source.value && row[SOURCE] !== +source.value) return false;
  if (one.value && other.value && isRight(answers[one.value]) === isRight(answers[other.value])) {
    return false;
  }
  const known = answers.filter((each) => each);
  const has = (each) => each?.[0] === verdict.value;
  if (verdict.value === "split") {
    if (!known.some(isRight) || known.every(isRight)) return false;
  } else if (verdict.value) {
    const ask = { some: () => known.some(has), every: () => known.length && known.every(has) };
    if (!(ask[method.value] ?? (() => has(answers[method.value])))()) return false;
  }
  if (!text) return true;
  const words = [row[ID], row[QUESTION], row[GOLD], ...known.map((each) => each[1])];
  return words.some((each) => each.toLowerCase().includes(text));
}

function startList(section, data) {
  const form = section.querySelector("form").elements;
  const [head, body] = [section.querySelector("thead"), section.querySelector("tbody")];
  const more = section.querySelector(".more");
  let found = [], shown = 0, columns = [];

  const showRow = (place) => {
    const row = data.rows[place], line = make("tr");
    const asked = make("th", "", { scope: "row" });
    asked.append(make("a", row[QUESTION], { href: `${data.pages}${place}.html` }));
    const about = [row[ID], data.sources[row[SOURCE]], data.categories[row[CATEGORY]]];
    asked.append(make("span", about.filter((each) => each).join(" · "), { class: "beside" }));
    line.append(asked, make("td", row[GOLD] || "–", { "data-head": "gold", class: "gold" }));
    for (const n of columns) {
      const cell = make("td", "", { "data-head": data.methods[n] }), answer = row[ANSWERS][n];
      const [sign, word] = MARKS[answer?.[0]] ?? ["–", "not answered"];
      const told = make("div");
      told.append(make("span", sign, { class: `mark ${answer?.[0] ?? ""}`, title: word }));
      told.append(answer?.[1] ?? "");
      cell.append(told);
      line.append(cell);
    }
    return line;
  };
  const showMore = () => {
    body.append(...found.slice(shown, shown + PAGE).map(showRow));
    shown = Math.min(found.length, shown + PAGE);
    more.hidden = shown === found.length;
  };
  const show = () => {
    const text = form.text.value.trim().toLowerCase();
    const pair = [form.one.value, form.other.value].filter((each) => each !== "").map(Number);
    columns = pair.length ? pair : data.methods.map((_, n) => n);
    found = [...data.rows.keys()].filter((place) => matches(data.rows[place], form, text));
    const names = ["question", "gold", ...columns.map((n) => data.methods[n])];
    const top = make("tr");
    top.append(...names.map((name) => make("th", name, { scope: "col" })));
    head.replaceChildren(top);
    body.replaceChildren();
    shown = 0;
    const [n, all] = [found.length, data.rows.length].map((each) => each.toLocaleString("en"));
    section.querySelector(".count").textContent = `${n} of ${all} questions`;
    showMore();
  };

  fill(form.category, data.categories);
  fill(form.source, data.sources);
  for (const select of [form.method, form.one, form.other]) fill(select, data.methods);
  section.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  section.querySelector("form").addEventListener("input", show);
  more.addEventListener("click", showMore);
  addEventListener("pageshow", show);
}

const chapters = JSON.parse(document.getElementById("items").textContent);
for (const section of document.querySelectorAll(".questions")) {
  startList(section, chapters[section.dataset.chapter]);
}
document.documentElement.dataset.ready = "true";
