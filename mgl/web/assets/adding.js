// Files that are read into memories, and the jobs that read them.

import { button, make, many, number } from "./dom.js";
import { api, fetchJson, follow } from "./source.js";

const SORTS = { documents: "documents", conversations: "chat logs" };
const isLog = ({ name }) => /\.jsonl?$/i.test(name);

/** A form that sends files, and a row for each that says what becomes of it; `done` hears of it.
    `kinds` are those that read documents and conversations, the usual ones first. */
export function addingForm(rows, kinds, done) {
  const guess = (file) => (isLog(file) ? `conversations ${kinds.conversations[0]}` : `documents ${kinds.documents[0]}`);
  const readAs = ([sort, name]) => kinds[sort].map((kind) => [`${sort} ${kind}`, `as ${name}, by ${kind}`]);
  const files = make("input", { id: "files", type: "file", multiple: true, required: true });
  const option = ([value, name]) => make("option", { value }, name);
  const as = make("select", { "aria-label": "How the files are read" }, ...[["", "as their endings say"], ...Object.entries(SORTS).flatMap(readAs)].map(option));
  const form = make("form", { class: "line begin" }, make("label", { for: "files" }, "Add files"), files, as, make("button", {}, "Add"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    for (const file of files.files) {
      const made = make("li", {});
      rows.prepend(made);
      addFile(made, file, as.value || guess(file), done);
    }
    form.reset();
  });
  return form;
}

async function addFile(made, file, as, done, confirm = false) {
  const [what, memory] = as.split(" ");
  const query = new URLSearchParams({ memory, ...(confirm && { confirm }) });
  const title = make("b", { dir: "auto" }, file.name);
  made.replaceChildren(title, make("span", { class: "note" }, "is sent…"));
  try {
    if (what === "documents") {
      query.set("name", file.name);
      followJob(made, await fetchJson(`/api/documents?${query}`, file), done);
      return;
    }
    const name = file.name.replace(/\.[^.]*$/, "");
    const { turns } = await fetchJson(`${api("conversations", name, "file")}?${query}`, file);
    made.replaceChildren(make("a", { href: `memory?id=${encodeURIComponent(name)}` }, name), make("span", { class: "note" }, many(turns, "turn")));
    done();
  } catch (error) {
    const isLarge = error.param === "confirm";
    const again = button(isLarge ? "Read it all the same" : "Try again", () => addFile(made, file, as, done, confirm || isLarge));
    made.replaceChildren(title, make("span", { class: "wrong", role: "alert" }, error.message), again, button("Dismiss", () => made.remove()));
  }
}

/** A row for each job that is not done. */
export const jobRows = (jobs, done) =>
  jobs.filter(({ state }) => ["waiting", "running", "failed"].includes(state)).map((job) => {
    const made = make("li", {});
    if (job.state === "failed") showJob(made, job);
    else followJob(made, job, done);
    return made;
  });

/** Show how far a job is, until it has ended. */
async function followJob(made, job, done) {
  showJob(made, job);
  try {
    await follow(api("jobs", job.id, "events"), undefined, (now) => showJob(made, now));
    done();
  } catch (error) {
    made.append(make("span", { class: "wrong", role: "alert" }, error.message), button("Try again", () => followJob(made, job, done)));
  }
}

function showJob(made, job) {
  const { id, document: name, memory, state, progress: at, memory_id: built, error } = job;
  const title = built ? make("a", { href: `memory?id=${built}` }, name) : make("b", { dir: "auto" }, name);
  const far = at.total ? `${at.stage}, ${number.format(at.done)} of ${number.format(at.total)}` : "";
  const said = { waiting: "waits for its turn", running: far || "is read", done: "is read", cancelled: error ?? "is cancelled", failed: error }[state];
  const bar = state === "running" ? make("progress", { "aria-label": `How far ${name} is read`, ...(at.total && { value: at.done, max: at.total }) }) : "";
  const isOpen = ["waiting", "running"].includes(state);
  const act = async (path, method) => {
    try {
      await fetchJson(path, undefined, method);
      if (!isOpen) made.remove();
    } catch (fault) {
      made.append(make("span", { class: "wrong", role: "alert" }, fault.message));
    }
  };
  const cancel = button("Cancel", () => act(api("jobs", id, "cancel"), "POST"), { "aria-label": `Cancel reading ${name}` });
  const dismiss = state === "failed" ? button("Delete", () => act(api("jobs", id), "DELETE")) : button("Dismiss", () => made.remove());
  made.replaceChildren(title, make("small", {}, memory), bar, make("span", { class: state === "failed" ? "wrong" : "note" }, said), isOpen ? cancel : dismiss);
}
