// The text: every passage that the graph stands on, and the way to it.

const text = byId("text");
const strip = byId("strip");
const passages = new Map([...elements.keys()].map((ref) => [ref, []]));
const covering = new Map();

function buildText() {
  for (const piece of text.querySelectorAll("mark")) {
    const refs = piece.dataset.refs.split(" ");
    covering.set(piece, refs.map((ref) => elements.get(ref)));
    refs.forEach((ref) => passages.get(ref).push(piece));
  }
  const length = Math.max(1, Number(byId("source").dataset.length));
  strip.dataset.length = length;
  for (const each of drawable) {
    const top = (each.start / length) * 1000;
    const high = Math.max(1.6, ((each.end - each.start) / length) * 1000);
    each.tick = draw("rect", { class: `k${each.look.colour}`, x: 1, width: 8, y: top, height: high });
    strip.append(each.tick);
  }
}

/** What is shown of some elements; that a hyperedge joins a node is said by either of the two.
    Categories stand on what they hold. */
const standing = (some) => {
  const seen = some.filter((each) => shown(each) && !each.layer);
  return plain(seen).length ? plain(seen) : seen;
};

/** All other elements that stand on some of the same characters. */
function besides(element) {
  const found = new Set(passages.get(element.ref).flatMap((piece) => covering.get(piece)));
  found.delete(element);
  return standing([...found]);
}

/** Bring a place to the upper third; again while blocks that come into sight change their size. */
function bring(target, tries = 6) {
  const box = text.getBoundingClientRect();
  const place = target.getBoundingClientRect();
  const wanted = Math.min(box.height * 0.3, Math.max(8, (box.height - place.height) / 2));
  const off = place.top - box.top - wanted;
  text.scrollTop += off;
  text.dataset.off = Math.round(target.getBoundingClientRect().top - box.top - wanted);
  if (tries > 0) requestAnimationFrame(() => bring(target, tries - 1));
}

function bringStart(start) {
  const heads = [...text.querySelectorAll("[data-start]")];
  const found = heads.filter((each) => Number(each.dataset.start) <= start).pop();
  if (found) bring(found);
}

text.addEventListener("click", (event) => {
  const piece = event.target.closest("mark");
  if (!piece || String(getSelection())) return;
  const here = standing(covering.get(piece));
  const next = here[(here.indexOf(state.selected) + 1) % here.length];
  if (next) select(next, "text");
});

/** A passage under the pointer shows where it is in the graph, and disturbs nothing else. */
let glanced = null;
function glance(element) {
  if (element === glanced) return;
  for (const [each, on] of [[glanced, false], [element, true]]) {
    if (!each) continue;
    for (const drawn of [each.drawn, each.area]) drawn?.classList.toggle("glance", on);
    passages.get(each.ref).forEach((piece) => piece.classList.toggle("hand", on));
  }
  glanced = element;
}
text.addEventListener("pointerover", (event) => {
  const piece = event.target.closest("mark");
  glance(piece ? covering.get(piece).find(shown) || null : null);
});
text.addEventListener("pointerleave", () => glance(null));

strip.addEventListener("click", (event) => {
  const box = strip.getBoundingClientRect();
  const part = (event.clientY - box.top) / box.height;
  bringStart(part * Number(strip.dataset.length));
});

/** The next marked passage in reading order, from the selected one or from what is in sight. */
function move(way) {
  const order = standing([...elements.values()]).sort(byReading);
  if (!order.length) return;
  const from = order.indexOf(state.selected);
  const first = way > 0 ? 0 : order.length - 1;
  const next = from < 0 ? first : (from + way + order.length) % order.length;
  select(order[next]);
}
byId("before").addEventListener("click", () => move(-1));
byId("after").addEventListener("click", () => move(1));

const sections = byId("sections");
if (sections) sections.addEventListener("change", () => bringStart(Number(sections.value)));

function dressText(before) {
  const hand = state.hovered;
  for (const [piece, here] of covering) {
    piece.classList.toggle("on", here.includes(state.selected));
    piece.classList.toggle("hand", Boolean(hand) && here.includes(hand));
    piece.classList.toggle("off", !here.some(shown));
    piece.classList.toggle("cited", here.some((each) => state.cited.has(each)));
  }
  for (const node of drawable) {
    node.tick.classList.toggle("on", state.selected === node);
    node.tick.toggleAttribute("hidden", !shown(node));
  }
  if (before.selected === state.selected) return;
  for (const piece of text.querySelectorAll("[aria-current]")) piece.removeAttribute("aria-current");
  if (state.selected) passages.get(state.selected.ref)[0].setAttribute("aria-current", "true");
}

onChange((before, origin) => {
  dressText(before);
  if (state.selected && state.selected !== before.selected && origin !== "text") {
    bring(passages.get(state.selected.ref)[0]);
  }
});
