// All evaluations in the server's folder, the newest first; those that are ticked share a report.

import { button, make, many, number } from "./dom.js";
import { age, faultRow, listTable, openPage, percent } from "./plain.js";

const COLUMNS = ["Run", "Benchmark", "Scores", "Answers", "Begun", "Model"];
const NONE = "There is no run in the folder: `mgl eval run BENCHMARK` writes one to ./runs, `mgl up --runs DIR` names another.";
const address = (names) => `run?${new URLSearchParams(names.map((name) => ["name", name]))}`;
const ticked = new Set();

function row(each) {
  if (each.fault) return faultRow(each);
  const tick = make("input", { type: "checkbox", "aria-label": `Compare ${each.name}` });
  tick.addEventListener("change", () => {
    if (tick.checked) ticked.add(each.name);
    else ticked.delete(each.name);
    together.disabled = !ticked.size;
  });
  const name = make("a", { href: address([each.name]) }, each.name);
  const begun = each.methods.filter(({ answers }) => answers);
  const scores = begun.map(({ label, score }) => make("span", { class: "score" }, make("b", {}, percent(score)), ` ${label}`));
  if (begun.length < each.methods.length) scores.push(make("small", {}, `${each.methods.length - begun.length} of ${many(each.methods.length, "method")} not begun`));
  const counted = `${number.format(each.answers)} of ${number.format(each.of)}${each.ended ? "" : ", not finished"}`;
  const headline = make("small", {}, `${each.headline.replaceAll("_", " ")}, %`);
  return [[tick, " ", name], [each.benchmark], [headline, ...scores], [counted], [age(each.started)], [make("span", { class: "model" }, each.models.join(", "))]];
}

const together = button("Compare those ticked", () => location.assign(address([...ticked])), { disabled: true });

await openPage("runs", "Evaluations", "/api/runs", ({ runs }) => {
  const keys = [({ name }) => name, (each) => each.benchmark, null, (each) => each.answers, (each) => each.started, null];
  const { line, parts } = listTable(runs, { noun: "run", heads: COLUMNS, row, empty: NONE, keys });
  line.append(together);
  return parts;
});
