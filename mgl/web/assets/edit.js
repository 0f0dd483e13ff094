// Corrections by hand: GAM's topics are edited; of any conversation, what a node stands on is forgotten.

import { button, make, many, shorten } from "./dom.js";
import { api, fetchJson } from "./source.js";
import { data } from "./state.js";

const post = (what, body) => fetchJson(api("memories", data.memory_id, what), body);

/** What can be done with an element, if anything. */
export function handEdits(element) {
  if (!data.turns || element.layer) return [];
  const place = make("div", { class: "by-hand" });
  const isTopic = data.memory === "gam" && element.look?.name === "topic";
  const under = data.turns.filter(([, start, end]) => start < element.end && element.start < end);
  const what = isTopic ? { topics: [element.id] } : { turns: under.map(([id]) => id) };
  const name = isTopic ? "Forget…" : `Forget ${under.length > 1 ? "these turns" : "this turn"}…`;
  if (isTopic) place.append(button("Edit…", () => act(place, () => editTopic(place, element))));
  if (under.length) place.append(button(name, () => act(place, () => forget(place, what))));
  return [place];
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
  const others = data.nodes.filter(({ id }) => id !== node.id && held.topics[id] && !held.topics[id].frozen);
  const option = ({ id, label }) => make("option", { value: id }, `${id} · ${shorten(label, 60)}`);
  const other = make("select", { id: "merge" }, make("option", { value: "" }, "none"), ...others.map(option));
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
    act(place, async () => {
      await post("edit", body);
      location.reload();
    });
  });
  place.replaceChildren(form);
  summary.focus();
}

/** Say what would go, and delete it for good when that is confirmed. */
async function forget(place, what) {
  const plan = await post("forget", { ...what, dry_run: true });
  const made = plan.turns.length > 1 ? "them are" : "it are";
  const said = `${many(plan.turns.length, "turn")} and what was made of ${made} deleted for good.`;
  const sure = button("Delete", () =>
    act(place, async () => {
      await post("forget", what);
      location.hash = "";
      location.reload();
    }),
  );
  place.replaceChildren(make("p", {}, said), sure);
  sure.focus();
}
