// Corrections by hand. Each is an edit in the log of the memory; only GAM's topics take them.

import { button, make, many } from "./dom.js";
import { api, fetchJson, live } from "./source.js";
import { data } from "./state.js";

const post = (what, body) => fetchJson(api("memories", data.memory_id, what), body);

/** What can be done with a node, if anything. */
export function handEdits(node) {
  if (!live || data.memory !== "gam" || node.look.name !== "topic") return [];
  const place = make("div", { class: "by-hand" });
  const edit = button("Edit…", () => act(place, () => editTopic(place, node)));
  const forget = button("Forget…", () => act(place, () => forgetTopic(place, node)));
  place.append(edit, forget);
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
  const form = make(
    "form",
    {},
    make("label", { for: "summary" }, "Summary"),
    summary,
    make("label", { for: "keywords" }, "Keywords"),
    keywords,
    make("label", {}, frozen, " Frozen: it is not rewritten, linked anew or forgotten"),
    make("button", {}, "Save"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const words = keywords.value.split(",").map((word) => word.trim()).filter(Boolean);
    const body = { topic: node.id };
    if (summary.value !== topic.summary) body.summary = summary.value;
    if (words.join() !== topic.keywords.join()) body.keywords = words;
    if (frozen.checked !== topic.frozen) body.frozen = frozen.checked;
    act(place, async () => {
      await post("edit", body);
      location.reload();
    });
  });
  place.replaceChildren(form);
  summary.focus();
}

/** Say what would go, and delete it for good when that is confirmed. */
async function forgetTopic(place, node) {
  const plan = await post("forget", { topics: [node.id], dry_run: true });
  const said = `${many(plan.turns.length, "turn")} and what was made of them are deleted for good.`;
  const sure = button("Delete", () =>
    act(place, async () => {
      await post("forget", { topics: [node.id] });
      location.hash = "";
      location.reload();
    }),
  );
  place.replaceChildren(make("p", {}, said), sure);
  sure.focus();
}
