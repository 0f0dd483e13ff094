// The panel: one element in full, or, with none selected, all nodes as a list.

const detail = byId("detail");
const number = new Intl.NumberFormat("en");
const hash = (element) => `#${element.node ? "node" : "edge"}=${encodeURIComponent(element.id)}`;

function link(element, name = element.label) {
  const made = make("a", { href: hash(element), dir: "auto", "data-ref": element.ref });
  if (element.node) made.append(sign(element.look));
  made.append(shorten(name, 90));
  return made;
}

detail.addEventListener("click", (event) => {
  const made = event.target.closest("a[data-ref]");
  if (!made) return;
  event.preventDefault();
  select(elements.get(made.dataset.ref));
  detail.focus({ preventScroll: true });
});

const range = (element) => `${number.format(element.start)}–${number.format(element.end)}`;

function facts(element) {
  const rows = [
    ["id", element.id],
    ["characters", range(element)],
    ["place", element.where],
    ["read at", data.steps > 1 ? `step ${element.step + 1} of ${data.steps}` : ""],
    ["gone at", element.gone === undefined ? "" : `step ${element.gone + 1} of ${data.steps}`],
  ];
  const list = make("dl");
  for (const [name, value] of rows) {
    if (value) list.append(make("div", {}, make("dt", {}, name), make("dd", { dir: "auto" }, value)));
  }
  return list;
}

function quotation(element) {
  return make("blockquote", { dir: "auto" }, element.quote);
}

function edgeList(title, edges, row) {
  if (!edges.length) return [];
  const items = edges.map((edge) => make("li", shown(edge) ? {} : { class: "off" }, ...row(edge)));
  return [make("h4", {}, `${title} `, make("small", {}, edges.length)), make("ul", {}, ...items)];
}

function nodePanel(node) {
  const content = node.content && ![node.label, node.quote].includes(node.content);
  return [
    make(
      "div",
      {},
      ...(content ? [make("p", { class: "content", dir: "auto" }, node.content)] : []),
      quotation(node),
      facts(node),
    ),
    make(
      "div",
      {},
      ...edgeList(node.hyperedge ? "Joins" : "Part of", ties(node), (edge) => [
        link(edge.from === node ? edge.to : edge.from),
      ]),
      ...edgeList("In", node.above, (hold) => [link(hold.from)]),
      ...edgeList("Holds", node.below, (hold) => [link(hold.to)]),
      ...edgeList("Edges out", plain(node.out), (edge) => [link(edge), " → ", link(edge.to)]),
      ...edgeList("Edges in", plain(node.into), (edge) => [link(edge.from), " → ", link(edge)]),
      ...sharing(node),
    ),
  ];
}

function edgePanel(edge) {
  return [
    make("div", {}, quotation(edge), facts(edge)),
    make(
      "div",
      {},
      make("h4", {}, "From"),
      link(edge.from),
      make("h4", {}, "To"),
      link(edge.to),
      ...sharing(edge),
    ),
  ];
}

function sharing(element) {
  const others = besides(element);
  if (!others.length) return [];
  const name = (each) => (each.node ? each.label : `${each.from.label} — ${each.relation} → ${each.to.label}`);
  const items = others.map((each) => make("li", {}, link(each, name(each))));
  return [make("h4", {}, "On the same passage"), make("ul", { class: "row" }, ...items)];
}

function overview() {
  const nodes = (state.query ? data.nodes : drawable).filter(shown).filter(matches);
  nodes.sort((one, other) => linked(other) - linked(one) || byReading(one, other));
  if (!data.nodes.length) return [make("p", { class: "note" }, "There is no node to show.")];
  const items = nodes.map((node) =>
    make(
      "li",
      { class: state.cited.has(node) ? "cited" : "" },
      link(node),
      make("small", {}, node.layer ? node.look.name : linked(node)),
    ),
  );
  const title = state.query ? "Nodes found" : "Nodes, most connected first";
  return [make("h4", {}, `${title} `, make("small", {}, nodes.length)), make("ul", { class: "index" }, ...items)];
}

function dressDetail() {
  const element = state.selected;
  if (!element) {
    detail.replaceChildren(...overview());
    return;
  }
  const close = make("button", { type: "button", class: "close", "aria-label": "Close: show all nodes" }, "×");
  close.addEventListener("click", () => {
    select(null);
    detail.focus({ preventScroll: true });
  });
  const down = make("button", { type: "button", class: "down" }, "Show in the text");
  down.addEventListener("click", () => {
    byId("source").scrollIntoView({ behavior: calm ? "auto" : "smooth" });
    bring(passages.get(element.ref)[0]);
  });
  const cited = element.node && state.cited.has(element);
  const kind = element.node ? [sign(element.look), element.look.name] : ["edge"];
  detail.replaceChildren(
    make(
      "div",
      { class: "top" },
      make("h3", { dir: "auto" }, element.label),
      make("span", { class: "kind" }, ...kind),
      ...(cited ? [make("span", { class: "tag" }, "cited")] : []),
      down,
      close,
    ),
    make("div", { class: "whole" }, ...(element.node ? nodePanel(element) : edgePanel(element))),
  );
  detail.scrollTop = 0;
}

onChange((before, origin) => {
  if (origin !== "hover") dressDetail();
  if (state.selected === before.selected || !state.selected) return;
  const what = state.selected.node ? describe(state.selected) : `edge: ${state.selected.relation}`;
  byId("said").textContent = `${what}. Characters ${range(state.selected)}.`;
});
