// Search, kinds, replay, zoom, answers.

const search = byId("search");

function found() {
  return data.nodes.filter((node) => shown(node) && matches(node)).sort(byReading);
}

function lookFor(query) {
  change({ query: query.trim().toLowerCase() }, "search");
  byId("found").textContent = state.query ? `${found().length} of ${data.nodes.filter(there).length}` : "";
}

search.addEventListener("input", () => lookFor(search.value));
search.addEventListener("keydown", (event) => {
  const nodes = found();
  if (event.key !== "Enter" || !nodes.length) return;
  const way = event.shiftKey ? -1 : 1;
  const next = nodes.indexOf(state.selected) + (state.selected || way > 0 ? way : 0);
  select(nodes[(next + nodes.length) % nodes.length]);
});

function buildKinds() {
  data.kinds.forEach((look, kind) => {
    if (!drawable.some((node) => node.kind === kind)) return;
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
      const selected = state.selected;
      change({ hidden });
      if (selected && !shown(selected)) select(null);
    });
    onChange(() => {
      button.setAttribute("aria-pressed", String(!state.hidden.has(kind)));
      count.textContent = drawable.filter((node) => node.kind === kind && there(node)).length;
    });
    byId("kinds").append(button);
  });
}

const slider = byId("step");
const play = byId("play");
let clock = null;

function buildReplay() {
  if (data.steps < 2 || !data.nodes.length) return;
  byId("replay").hidden = false;
  slider.max = String(data.steps - 1);
}

function goTo(step) {
  const selected = state.selected;
  change({ step: Math.max(0, Math.min(data.steps - 1, step)) }, "replay");
  if (selected && !shown(selected)) select(null);
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
  clock = setInterval(() => {
    goTo(state.step + 1);
    if (state.step >= data.steps - 1) stop();
  }, 900);
});
onChange(() => {
  slider.value = String(state.step);
  const areas = hyperedges.filter(shown).length;
  const nodes = drawable.filter(shown).length - areas;
  const edges = plain(data.edges).filter(shown).length;
  const step = `step ${state.step + 1} of ${data.steps}`;
  const counts = [many(nodes, "node")];
  if (hyperedges.length) counts.push(many(areas, "hyperedge"));
  if (categories.length) counts.push(many(categories.filter(there).length, "category"));
  if (edges || !hyperedges.length) counts.push(many(edges, "edge"));
  const said = ` · ${counts.join(", ")}`;
  byId("step-said").replaceChildren(step, make("span", { class: "long" }, said));
  slider.setAttribute("aria-valuetext", step + said);
});

byId("zoom-in").addEventListener("click", () => zoomBy(1.4));
byId("zoom-out").addEventListener("click", () => zoomBy(1 / 1.4));
byId("zoom-fit").addEventListener("click", () => {
  fit();
  redraw();
});

/** The nodes that the answer in sight cites, of all answers when none is open; and its paths. */
function answered() {
  const open = [...document.querySelectorAll("details.asked[open]")].map((each) => Number(each.dataset.answer));
  const cited = open.length ? open.map((answer) => data.cited[answer]) : data.cited;
  const paths = open.flatMap((answer) => data.paths[answer]);
  const nodes = (places) => places.map((place) => data.nodes[place]);
  return { cited: new Set(nodes(cited.flat())), paths: paths.map(nodes) };
}
for (const asked of document.querySelectorAll("details.asked")) {
  asked.addEventListener("toggle", () => change(answered()));
}

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
