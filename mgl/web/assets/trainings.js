// All adapters, those of the home and those that ship, with what was measured of each.

import { make, number } from "./dom.js";
import { faultRow, listTable, openPage } from "./plain.js";

const COLUMNS = ["Adapter", "Kind", "Of", "Rows", "Before → after", "Licence of its data"];
const NONE = "Nothing was trained yet: `mgl train` makes adapters.";

function row(each) {
  if (each.fault) return faultRow(each);
  const name = make("a", { href: `training?${new URLSearchParams({ name: each.name })}` }, each.name);
  const rows = Object.values(each.rows).reduce((sum, count) => sum + count, 0);
  const moved = Object.entries(each.metrics).filter(([metric]) => `${metric} before` in each.metrics);
  const measured = moved.map(([metric, value]) => make("span", { class: "score" }, `${metric} ${each.metrics[`${metric} before`]} → `, make("b", {}, String(value))));
  return [[name], [each.kind], [make("span", { class: "model" }, each.base || "–")], [number.format(rows)], measured, [each.licence]];
}

await openPage("trainings", "Trainings", "/api/trainings", ({ trainings }) => listTable(trainings, { noun: "adapter", heads: COLUMNS, row, empty: NONE, keys: [({ name }) => name] }).parts);
