// Deleting a memory, with its document or conversation where it is the last; renaming these.

import { button, make, many, shorten } from "./dom.js";
import { api, fetchJson } from "./source.js";

/** A button that says what would go, and deletes it for good when that is confirmed. */
export function deleteButton(id, name, done) {
  const label = `Delete ${shorten(name, 60)}…`;
  return button("Delete…", () => openDeletion(id, done), { "aria-label": label, title: label });
}

async function openDeletion(id, done) {
  const path = api("memories", id);
  const said = make("div", {}, make("p", { class: "note" }, "Loading…"));
  const wrong = make("p", { class: "wrong", role: "alert" });
  const sure = button("Delete for good", () => attempt(), { class: "danger", disabled: true });
  const leave = button("Cancel", () => box.close());
  const title = make("h2", { id: "deletion-title", dir: "auto" }, "Delete");
  const box = make("dialog", { class: "deletion", "aria-labelledby": "deletion-title" }, title, said, wrong, make("p", { class: "line" }, sure, leave));
  const attempt = async () => {
    sure.disabled = true;
    try {
      await fetchJson(path, undefined, "DELETE");
      done();
    } catch (error) {
      wrong.textContent = error.message;
      sure.disabled = false;
    }
  };
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  leave.focus();
  try {
    const plan = await fetchJson(`${path}?dry_run=true`, undefined, "DELETE");
    title.textContent = `Delete ${plan.takes_source ? plan.name : `one memory of ${plan.name}`}?`;
    said.replaceChildren(make("ul", {}, ...describeDeletion(plan).map((line) => make("li", { dir: "auto" }, line))));
    sure.disabled = false;
  } catch (error) {
    said.replaceChildren();
    wrong.textContent = error.message;
  }
}

/** A button that asks for another name of a memory's document, or conversation. */
export function renameButton(id, name, isTalk, done) {
  return button("Rename…", () => openRenaming(id, name, isTalk, done));
}

const FREE = "Programs that use the old name begin a new conversation with it. Chats of clients that send the id of a chat go on here.";

function openRenaming(id, name, isTalk, done) {
  const input = make("input", { id: "rename", required: true, maxlength: 200, autocomplete: "off", value: name, dir: "auto" });
  const wrong = make("p", { class: "wrong", role: "alert" });
  const leave = button("Cancel", () => box.close());
  const form = make("form", {}, make("label", { for: "rename" }, "Name"), input, isTalk ? make("p", { class: "note" }, FREE) : "", wrong, make("p", { class: "line" }, make("button", { class: "main" }, "Rename"), leave));
  const box = make("dialog", { class: "deletion", "aria-labelledby": "rename-title" }, make("h2", { id: "rename-title" }, `Rename the ${isTalk ? "conversation" : "document"}`), form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await fetchJson(api("memories", id), { name: input.value.trim() }, "PATCH");
      done();
    } catch (error) {
      wrong.textContent = error.message;
    }
  });
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  input.select();
}

function describeDeletion(plan) {
  const { memories, kept, turns, characters, takes_source: whole } = plan;
  const kinds = memories.map(({ memory, memory_id: id }) => `${memory} (${id})`).join(", ");
  const lines = [`${many(memories.length, "memory")}: ${kinds}`];
  if (whole) lines.push(turns === null ? `the document: ${many(characters, "character")}` : `the conversation: ${many(turns, "turn")}`);
  else lines.push(`${plan.name} stays: ${many(kept.length, "other memory")} of it ${kept.length > 1 ? "are" : "is"} kept`);
  lines.push(["edit", "question", "answer"].map((noun) => many(plan[`${noun}s`], noun)).concat(many(plan.calls, "model call")).join(", "));
  const named = { job: plan.jobs, "adapter trained on it": plan.adapters, "unfinished training on it": plan.trainings };
  for (const [noun, names] of Object.entries(named)) if (names.length) lines.push(`${noun}: ${names.join(", ")}`);
  if (plan.runs.length) lines.push(`kept by evaluations: what they measured of it, in ${plan.runs.join(", ")}`);
  return lines;
}
