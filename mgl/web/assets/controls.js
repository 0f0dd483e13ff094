// Search, filters and replay.

import { byId, make, many, number } from "./dom.js";
import { sign } from "./shapes.js";
import { byReading, categories, change, data, drawable, filter, hyperedges, matches, onChange, onNews, plain, select, shown, state, there } from "./state.js";
import { bringRange, findInText } from "./text.js";

const search = byId("search");

function found() {
  return data.nodes.filter((node) => shown(node) && matches(node)).sort(byReading);
}

let place = -1; // of the hit in the text that was shown last

function lookFor(query) {
  place = -1;
  const wanted = query.trim();
  change({ query: wanted.toLowerCase(), hits: findInText(wanted) }, "search");
  countFound(wanted);
}

function countFound(wanted) {
  const nodes = `${number.format(found().length)} of ${many(data.nodes.filter(there).length, "node")}`;
  byId("found").textContent = wanted ? `${data.nodes.length ? `${nodes}, ` : ""}${number.format(state.hits.length)} in the text` : "";
}

search.addEventListener("input", () => lookFor(search.value));
search.addEventListener("keydown", (event) => {
  const nodes = found();
  if (event.key !== "Enter") return;
  const way = event.shiftKey ? -1 : 1;
  if (!nodes.length && state.hits.length) {
    place = (Math.max(place, way > 0 ? -1 : 0) + way + state.hits.length) % state.hits.length;
    bringRange(state.hits[place].range);
  }
  if (!nodes.length) return;
  const next = nodes.indexOf(state.selected) + (state.selected || way > 0 ? way : 0);
  select(nodes[(next + nodes.length) % nodes.length]);
});

let kinds = [];

export function buildKinds() {
  kinds = data.kinds.flatMap((look, kind) => {
    if (!drawable.some((node) => node.kind === kind)) return [];
    const count = make("small");
    const button = make(
      "button",
      { type: "button", class: `kind k${look.colour}`, "aria-pressed": "true" },
      sign(look),
      make("bdi", {}, look.name),
      count,
    );
    button.addEventListener("click", () => {
      const hidden = new Set(state.hidden);
      if (!hidden.delete(kind)) hidden.add(kind);
      filter({ hidden });
    });
    return [{ kind, button, count }];
  });
  byId("kinds").replaceChildren(...kinds.map(({ button }) => button));
}
onNews(buildKinds);

onChange((before, origin) => {
  if (origin === "hover") return;
  for (const { kind, button, count } of kinds) {
    button.setAttribute("aria-pressed", String(!state.hidden.has(kind)));
    count.textContent = number.format(drawable.filter((node) => node.kind === kind && there(node)).length);
  }
});

const slider = byId("step");
const play = byId("play");
let clock = null;
const FRAMES = 80; // of a replay, however long the log is

/** Show what stands in one chapter, page or session. */
export function buildPlaces() {
  places.hidden = data.sections.length < 2;
  const option = ({ label }, index) => make("option", { value: index }, label);
  places.replaceChildren(make("option", { value: "" }, "everywhere"), ...data.sections.map(option));
}
onNews(buildPlaces);
const places = byId("places");
places.addEventListener("change", () => filter({ section: data.sections[places.value] ?? null }));
onChange(() => (places.value = state.section ? String(data.sections.indexOf(state.section)) : ""));

export function buildReplay() {
  if (data.steps < 2 || !data.nodes.length) return;
  byId("replay").hidden = false;
  slider.max = String(data.steps - 1);
}
onNews(buildReplay);
onNews(() => {
  place = -1;
  state.hits = findInText(search.value.trim());
  countFound(search.value.trim());
});

/** Whether the growth of the graph is being replayed. */
export const isReplaying = () => clock !== null;

export function goTo(step) {
  filter({ step: Math.max(0, Math.min(data.steps - 1, step)) }, "replay");
}

function stop() {
  clearInterval(clock);
  clock = null;
  play.textContent = "▶";
  play.setAttribute("aria-label", "Replay how the graph grew");
}

slider.addEventListener("input", () => {
  stop();
  goTo(Number(slider.value));
});
play.addEventListener("click", () => {
  if (clock) return stop();
  goTo(state.step >= data.steps - 1 ? 0 : state.step);
  play.textContent = "❚❚";
  play.setAttribute("aria-label", "Stop the replay");
  const stride = Math.ceil(data.steps / FRAMES);
  clock = setInterval(
    () => {
      goTo(state.step + stride);
      if (state.step >= data.steps - 1) stop();
    },
    data.steps > FRAMES / 4 ? 250 : 900,
  );
});
onChange((before, origin) => {
  if (origin === "hover") return;
  slider.value = String(state.step);
  const areas = hyperedges.filter(shown).length;
  const nodes = drawable.filter(shown).length - areas;
  const edges = plain(data.edges).filter(shown).length;
  const step = `step ${number.format(state.step + 1)} of ${number.format(data.steps)}`;
  const counts = [many(nodes, "node")];
  if (hyperedges.length) counts.push(many(areas, "hyperedge"));
  if (categories.length) counts.push(many(categories.filter(there).length, "category"));
  if (edges || !hyperedges.length) counts.push(many(edges, "edge"));
  const said = ` · ${counts.join(", ")}`;
  byId("step-said").replaceChildren(step, make("span", { class: "long" }, said));
  slider.setAttribute("aria-valuetext", step + said);
});

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "Escape") {
    if (state.query) {
      search.value = "";
      lookFor("");
    } else select(null);
  } else if (event.key === "/" && !typing) {
    event.preventDefault();
    search.focus();
  }
});
