// How an adapter was trained: its curves, what was measured before and after, and what changed.

import { draw, make, many, pairList } from "./dom.js";
import { openPage, table } from "./plain.js";

const name = new URLSearchParams(location.search).get("name") ?? "";
const [WIDE, HIGH, EDGE] = [320, 150, 26];
const LEAST = 0.1; // of a curve's range, so that noise does not look like a trend

/** A value after each epoch; the epoch that was kept is filled. */
function curve(title, values, best) {
  const spread = Math.max(Math.max(...values) - Math.min(...values), LEAST);
  const low = (Math.max(...values) + Math.min(...values) - spread) / 2;
  const x = (at) => EDGE + (values.length > 1 ? (at * (WIDE - 2 * EDGE)) / (values.length - 1) : (WIDE - 2 * EDGE) / 2);
  const y = (value) => HIGH - EDGE - ((value - low) / spread) * (HIGH - 2.2 * EDGE);
  const points = values.map((value, at) => [x(at), y(value)]);
  const dots = points.map(([cx, cy], at) => draw("circle", { class: at === best ? "kept" : null, cx, cy, r: 4.5 }));
  const text = (words, place, down) => draw("text", { x: place, y: down, "text-anchor": "middle" }, words);
  const words = points.flatMap(([at, down], epoch) => [text(values[epoch].toFixed(3), at, down - 9), text(String(epoch + 1), at, HIGH - 6)]);
  const shown = draw(
    "svg",
    { class: "curve", viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": `${title} after each epoch: ${values.join(", ")}` },
    draw("polyline", { points: points.map((point) => point.join()).join(" ") }),
    ...dots,
    ...words,
  );
  return make("figure", { class: "card" }, make("figcaption", {}, title), shown);
}

function curves({ epochs, best }) {
  if (!epochs.length) return [make("p", { class: "note" }, "Its epochs were not written down.")];
  const of = (key) => epochs.map((epoch) => epoch[key]);
  const kept = best === null ? "; none was better than the weights before, which were kept" : `; epoch ${best + 1}, filled, was kept`;
  return [
    make("div", { class: "cards" }, curve("Loss", of("loss"), best), curve("On held-out rows", of("metric"), best)),
    make("p", { class: "note" }, `By epoch${kept}.`),
  ];
}

function measured({ metrics }) {
  const names = Object.keys(metrics).filter((metric) => !(metric.endsWith(" before") && metric.slice(0, -7) in metrics));
  const row = (metric) => {
    const before = metrics[`${metric} before`];
    const change = before === undefined ? "–" : `${metrics[metric] < before ? "−" : "+"}${Math.abs(metrics[metric] - before).toFixed(4)}`;
    return [[metric], [String(before ?? "–")], [String(metrics[metric])], [change]];
  };
  return names.length ? [table(["Measure", "Before", "After", "Change"], names.map(row))] : [];
}

const part = (title, some) => (some.length ? [make("section", { class: "part" }, make("h2", {}, title), ...some)] : []);
const pairs = (some) => Object.entries(some).map(([key, value]) => [key, String(value)]);

function show(training) {
  const learnt = `${many(training.sources, "source")}, ${many(training.questions, "question")}`;
  const about = [["kind", training.kind], ["of", training.base], ["licence of its data", training.licence], ["learnt from", learnt], ["adapted to", training.adapted_to ? many(training.adapted_to, "source") : ""], ["identity", training.identity]];
  const examples = training.examples.map((line) => make("li", { dir: "auto" }, line));
  return [
    pairList(about.filter(([, value]) => value !== "")),
    ...part("How it went", curves(training)),
    ...part("Before and after, on rows that it was not trained on", measured(training)),
    ...part("What changed most, first for the better", examples.length ? [make("ol", { class: "passages" }, ...examples)] : []),
    ...part("Rows by where they came from", Object.keys(training.rows).length ? [pairList(pairs(training.rows))] : []),
    ...part("Settings", Object.keys(training.settings).length ? [pairList(pairs(training.settings))] : []),
  ];
}

await openPage("trainings", name, `/api/trainings/${encodeURIComponent(name)}`, show);
