// A conversation's topics by the day on which each began, with the time between.

import { link } from "./detail.js";
import { byId, make, many } from "./dom.js";
import { byReading, data, drawable, elements, matches, onChange, select, shown, state } from "./state.js";

const timeline = byId("timeline");
const DAY = 24 * 60 * 60 * 1000;

/** Whether there is anything to put in order of time. */
export const hasTimes = data.sections.some(({ day }) => day) && drawable.some(({ look }) => look.name === "topic");

/** Where the topic's last turn was said, if that is another session. */
function lasts(node) {
  const last = data.sections.find(({ start, end }) => start < node.end && node.end <= end);
  return last && last !== node.section ? `until ${last.day || last.label}` : "";
}

function between(one, other) {
  const days = Math.round((Date.parse(other) - Date.parse(one)) / DAY);
  if (!(days > 1)) return "";
  return days < 14 ? `${days} days later` : days < 60 ? `${Math.round(days / 7)} weeks later` : `${Math.round(days / 30.4)} months later`;
}

function topicRow(node) {
  const until = lasts(node);
  return make(
    "li",
    { class: [matches(node) ? "" : "dim", state.cited.has(node) ? "cited" : "", node === state.selected ? "on" : ""].join(" ").trim() || null },
    link(node),
    until ? make("small", {}, until) : "",
    make("p", { dir: "auto" }, node.content),
  );
}

function drawTimeline() {
  if (timeline.hidden) return;
  const topics = drawable.filter(shown).sort(byReading);
  let last = null;
  const days = data.sections.map((section) => {
    const here = topics.filter((node) => node.section === section);
    const gap = last && section.day ? between(last, section.day) : "";
    last = section.day || last;
    const head = make("h3", {}, section.day || section.label, " ", make("small", {}, many(here.length, "topic")));
    const row = make("li", {}, head, make("ul", {}, ...here.map(topicRow)));
    return [gap ? make("li", { class: "gap" }, gap) : "", row];
  });
  timeline.replaceChildren(make("ol", {}, ...days.flat()));
}

timeline.addEventListener("click", (event) => {
  const made = event.target.closest("a[data-ref]");
  if (!made) return;
  event.preventDefault();
  select(elements.get(made.dataset.ref), "timeline");
});

onChange((before, origin) => {
  if (origin !== "hover") drawTimeline();
});
