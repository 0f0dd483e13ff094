// Corrections by hand: GAM's topics are edited, Mnemis' entities merged; of any conversation, what a node stands on is forgotten.

import { button, make, many, shorten } from "./dom.js";
import { api, fetchJson } from "./source.js";
import { data, drawable, renew } from "./state.js";

const post = (what, body) => fetchJson(api("memories", data.memory_id, ...what), body);

/** What can be done with an element, if anything. */
export function handEdits(element) {
  if (!data.grows || element.layer) return [];
  const place = make("div", { class: "by-hand" });
  const isTopic = data.memory === "gam" && element.look?.name === "topic";
  const under = data.turns.filter(({ start, end }) => start < element.end && element.start < end);
  const what = isTopic ? { topics: [element.id] } : { turns: under.map(({ id }) => id) };
  const name = isTopic ? "Forget…" : `Forget ${under.length > 1 ? "these turns" : "this turn"}…`;
  if (isTopic) place.append(button("Edit…", () => act(place, () => editTopic(place, element))));
  if (data.memory === "mnemis" && element.node && listOthers(element).length) place.append(button("Merge…", () => mergeEntity(place, element)));
  if (under.length) place.append(button(name, () => act(place, () => forget(place, what))));
  return [place];
}

/** What can be done with a turn of a conversation, which says `words`. */
export function turnTools(turn, words) {
  const place = make("div", { class: "by-hand" });
  const forgets = () => act(place, () => forget(place, { turns: [turn.id] }));
  place.append(button("Correct…", () => correct(place, turn, words)), button("Forget…", forgets));
  return place;
}

function correct(place, turn, words) {
  const text = make("textarea", { id: "words", rows: 3, required: true, dir: "auto" });
  text.value = words;
  const note = "The old words, the reply to them and what was made of them are deleted for good. The new ones stand in their place, and the memory reads them as what was said last.";
  const form = make("form", {}, make("label", { for: "words" }, `What ${turn.speaker || "the speaker"} said`), text, make("p", { class: "note" }, note), make("button", {}, "Save"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    save(place, ["turns", turn.id], { text: text.value });
  });
  place.replaceChildren(form);
  text.focus();
}

async function act(place, work) {
  try {
    await work();
  } catch (error) {
    place.append(make("p", { class: "wrong", role: "alert" }, error.message));
  }
}

async function editTopic(place, node) {
  const held = await fetchJson(api("memories", data.memory_id, "export"));
  const topic = held.topics[node.id];
  const summary = make("textarea", { id: "summary", rows: 4 }, topic.summary);
  const keywords = make("input", { id: "keywords", value: topic.keywords.join(", ") });
  const frozen = make("input", { id: "frozen", type: "checkbox", checked: topic.frozen });
  const other = choose(listOthers(node).filter(({ id }) => held.topics[id] && !held.topics[id].frozen));
  const form = make(
    "form",
    {},
    make("label", { for: "summary" }, "Summary"),
    summary,
    make("label", { for: "keywords" }, "Keywords"),
    keywords,
    make("label", {}, frozen, " Frozen: it is not rewritten, merged, linked anew or forgotten"),
    make("label", { for: "merge" }, "Merge another topic into this one"),
    other,
    make("button", {}, "Save"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const words = keywords.value.split(",").map((word) => word.trim()).filter(Boolean);
    const body = { topic: node.id };
    if (summary.value !== topic.summary) body.summary = summary.value;
    if (words.join() !== topic.keywords.join()) body.keywords = words;
    if (frozen.checked !== topic.frozen) body.frozen = frozen.checked;
    if (other.value) body.merge = other.value;
    save(place, ["edit"], body);
  });
  place.replaceChildren(form);
  summary.focus();
}

function mergeEntity(place, node) {
  const other = choose(listOthers(node).sort((one, two) => one.label.localeCompare(two.label)));
  const form = make("form", {}, make("label", { for: "merge" }, "Merge another entity into this one"), other, make("button", {}, "Save"));
  other.required = true;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    save(place, ["edit"], { topic: node.id, merge: other.value });
  });
  place.replaceChildren(form);
  other.focus();
}

const listOthers = (node) => drawable.filter((each) => each !== node);

function choose(nodes) {
  const option = ({ id, label }) => make("option", { value: id }, `${shorten(label, 60)} (${id})`);
  return make("select", { id: "merge" }, make("option", { value: "" }, "none"), ...nodes.map(option));
}

const save = (place, what, body) =>
  act(place, async () => {
    await post(what, body);
    await renew();
  });

/** Say what would go, and delete it for good when that is confirmed. */
async function forget(place, what) {
  const plan = await post(["forget"], { ...what, dry_run: true });
  const made = plan.turns.length > 1 ? "them are" : "it are";
  const stay = plan.echoes.length ? ` ${many(plan.echoes.length, "other turn")} with the same words ${plan.echoes.length > 1 ? "stay" : "stays"}.` : "";
  const there = plan.elsewhere.length ? ` The same words stay in ${plan.elsewhere.join(", ")}.` : "";
  const asked = plan.answers.length ? ` Answers that go with ${plan.turns.length > 1 ? "them" : "it"}: ${plan.answers.map((each) => shorten(each, 60)).join(" · ")}.` : "";
  const said = `${many(plan.turns.length, "turn")} and what was made of ${made} deleted for good.${asked}${stay}${there}`;
  const sure = button("Delete", () =>
    act(place, async () => {
      await post(["forget"], what);
      await renew();
    }),
  );
  place.replaceChildren(make("p", {}, said), sure);
  sure.focus();
}
