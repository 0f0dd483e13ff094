// The report of one or more evaluations: tables with intervals, then the questions one by one.

import { fill, make, many } from "./dom.js";
import { openPage, percent, span, table } from "./plain.js";

const names = new URLSearchParams(location.search).getAll("name");
const SIGNS = { right: "✓", wrong: "✗", failed: "!", unsure: "?" };
const KINDS = { "": "all", split: "where methods differ", wrong: "all wrong", right: "all right", unsure: "without a score" };

const note = (text) => make("p", { class: "note", dir: "auto" }, text);

function cell({ text, beside, drawn }) {
  return [drawn ? make("b", {}, text) : text, drawn ? span(drawn) : "", beside ? make("small", {}, beside) : ""];
}

function tableSection({ title, head, rows, notes, folded }) {
  const whole = [
    make("div", { class: "scroll", role: "region", "aria-label": title, tabindex: 0 }, table(head, rows.map((row) => row.map(cell)))),
    ...notes.map(note),
  ];
  return folded
    ? make("details", { class: "part" }, make("summary", {}, title), ...whole)
    : make("section", { class: "part" }, make("h3", {}, title), ...whole);
}

const verdict = (name, label = "") =>
  make("span", { class: `outcome ${name}` }, `${SIGNS[name]} `, label, make("span", { class: label ? "unseen" : "" }, ` ${name}`));

/** Passages under their ids; those that hold the answer are marked. */
function passages(title, some, more = 0) {
  if (!some.length) return [];
  const row = ([id, text, gold]) =>
    make("li", { class: gold ? "gold" : null, dir: "auto" }, make("small", {}, id, gold ? " · evidence" : ""), " ", text || make("i", {}, "the text is not here"));
  const rest = more > 0 ? [note(`and ${many(more, "more passage")}`)] : [];
  return [make("details", {}, make("summary", {}, title), make("ul", { class: "passages" }, ...some.map(row)), ...rest)];
}

const folded = (title, some, row) =>
  some.length ? [make("details", {}, make("summary", {}, `${title} (${some.length})`), ...some.map((each) => row(each)))] : [];

function answerCard(said) {
  const scores = Object.entries(said.scores).map(([name, [value, why]]) => `${name.replaceAll("_", " ")} ${percent(value)}${why ? ` (${why})` : ""}`);
  return make(
    "section",
    { class: "card" },
    make("h4", { dir: "auto" }, said.label, " ", verdict(said.verdict)),
    make("p", { dir: "auto" }, said.reason || said.answer || make("i", {}, "empty")),
    note(scores.join(" · ")),
    ...passages(`Read (${said.read_in_all})`, said.read, said.read_in_all - said.read.length),
    ...folded("Cited", said.cited, (quote) => make("blockquote", { dir: "auto" }, quote)),
    ...folded("Steps", said.trace, note),
  );
}

function questionRow(each) {
  const marks = each.answers.map((said) => verdict(said.verdict, said.label));
  const asked = make("summary", {}, make("span", { dir: "auto" }, each.text), " ", make("span", { class: "marks" }, ...marks));
  const made = make("details", { class: "question" }, asked);
  made.addEventListener("toggle", () => {
    if (!made.open || made.childElementCount > 1) return;
    const gold = make(
      "section",
      { class: "card gold" },
      make("h4", {}, "Gold answer"),
      make("p", { dir: "auto" }, each.golds.join(" / ") || make("i", {}, "none")),
      ...passages(`Evidence (${each.evidence.length})`, each.evidence),
    );
    made.append(note([each.id, each.source, each.category].filter(Boolean).join(" · ")), make("div", { class: "cards" }, gold, ...each.answers.map(answerCard)));
  });
  return make("li", {}, made);
}

function questionSection({ questions, left_out: left }) {
  if (!questions.length) return [];
  const which = make("select", { "aria-label": "Which questions" }, ...Object.entries(KINDS).map(([value, name]) => make("option", { value }, name)));
  const list = make("ol", { class: "questions" });
  const show = () => {
    const found = questions.filter(({ kind }) => !which.value || kind === which.value);
    list.replaceChildren(...(found.length ? [] : [make("li", { class: "note" }, "None.")]));
    fill(list, found, questionRow, 50);
  };
  which.addEventListener("change", show);
  show();
  const rest = left ? [note(`${many(left, "more question")} not shown here.`)] : [];
  return [make("section", { class: "part" }, make("h3", {}, "Question by question ", which), list, ...rest)];
}

function chapterSection(chapter) {
  return make(
    "section",
    {},
    make("h2", { dir: "auto" }, chapter.title),
    make("p", { class: "headline", dir: "auto" }, chapter.headline),
    ...chapter.notes.map(note),
    ...chapter.tables.map(tableSection),
    ...questionSection(chapter),
  );
}

const title = names.join(", ") || "No run was named";
const path = `/api/runs/report?${new URLSearchParams(names.map((name) => ["name", name]))}`;
await openPage("runs", title, path, ({ chapters }) => chapters.map(chapterSection));
