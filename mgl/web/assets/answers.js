// What was asked and answered, and the box to ask more.

import { byId, button, make, many, number } from "./dom.js";
import { api, follow, live } from "./source.js";
import { change, data, findNode, isHeld, select } from "./state.js";
import { showRange } from "./text.js";

const asked = byId("asked");
const QUOTE = 400;

export function buildAnswers() {
  const answered = new Set(data.answers.map((answer) => answer.question));
  asked.append(...data.answers.map((answer, index) => panel(answer, index === data.answers.length - 1)));
  for (const question of data.questions.filter((each) => !answered.has(each))) {
    asked.append(
      make(
        "div",
        { class: "unanswered" },
        make("h2", { dir: "auto" }, question),
        make("p", { class: "note" }, "Not answered yet."),
      ),
    );
  }
  if (!asked.childElementCount && !live) asked.append(make("p", { class: "note" }, "No question was asked of this memory."));
  byId("ask").hidden = !live;
}

/** An answer below its question; the answers that are open say what is cited. */
function panel(answer, open) {
  const ground = make("div", { class: "ground" });
  const said = make("p", { class: "answer", dir: "auto" });
  const made = make(
    "details",
    { class: "asked", name: "asked", open },
    make("summary", {}, make("h2", { dir: "auto" }, answer.question)),
    said,
    ground,
  );
  made.addEventListener("toggle", () => change(answered()));
  made.write = (words) => said.replaceChildren(words);
  made.finish = (whole) => {
    made.answer = whole;
    made.write(whole.answer);
    ground.replaceChildren(...basis(whole));
  };
  if (answer.citations) made.finish(answer);
  return made;
}

function basis({ confidence, citations, compaction_ratio: ratio, marks, trace, usage }) {
  const notes = [...marks];
  if (ratio !== null) notes.unshift(`prompt ${(100 * ratio).toFixed(1)}% as long as the text`);
  if (usage) notes.push(`${many(usage.calls, "call")}, ${number.format(usage.input_tokens + usage.output_tokens)} tokens, ${usage.seconds.toFixed(1)} s`);
  if (!citations.length) notes.push("cites no passage");
  const sure = confidence && make("span", { class: `confidence ${confidence}` }, `${confidence} confidence`);
  const steps = make("details", { class: "trace" }, make("summary", {}, `${many(trace.length, "step")} to this answer`));
  steps.append(make("ol", {}, ...trace.map((step) => make("li", { dir: "auto" }, step))));
  return [
    sure || "",
    citations.length ? make("ol", { class: "chips", "aria-label": "Cited passages" }, ...citations.map(chip)) : "",
    ...notes.map((note) => make("span", { class: "note" }, note)),
    trace.length ? steps : "",
  ];
}

function chip(citation, index) {
  const node = findNode(citation.node_id);
  const where = citation.session ?? citation.chapter ?? (citation.page && `page ${citation.page}`);
  const name = node?.label ?? (citation.speaker ? `${citation.speaker}: ${citation.quote.slice(0, 60)}` : citation.node_id);
  const inner = [
    make("b", {}, String(index + 1)),
    " ",
    make("bdi", {}, name),
    " ",
    make("small", {}, [where, `${number.format(citation.start)}–${number.format(citation.end)}`].filter(Boolean).join(", ")),
  ];
  const made = button("", () => open(citation), { class: "chip", title: citation.quote.slice(0, QUOTE) });
  made.append(...inner);
  return make("li", {}, made);
}

/** Open the source of a citation beside the answer. */
function open(citation) {
  const node = findNode(citation.node_id);
  if (node) select(node);
  showRange(citation.start, citation.end);
}

/** The nodes that the answer in sight cites, of all answers when none is open; and its paths. */
export function answered() {
  const all = [...asked.querySelectorAll(".asked")].filter((each) => each.answer);
  const seen = all.some((each) => each.open) ? all.filter((each) => each.open) : all;
  const cited = seen.flatMap(({ answer }) => answer.citations.map((each) => findNode(each.node_id)));
  const ways = seen.filter((each) => each.open).flatMap(({ answer }) => answer.paths);
  const paths = ways.map((path) => path.map(findNode));
  const isWay = (path) => path.every((node, index) => node && (!index || isHeld(node, path[index - 1])));
  return { cited: new Set(cited.filter(Boolean)), paths: paths.filter(isWay) };
}

byId("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  const input = byId("question");
  const question = input.value.trim();
  const send = byId("send");
  if (!question || send.disabled) return;
  send.disabled = true;
  const made = panel({ question }, true);
  made.write("…");
  for (const each of asked.querySelectorAll(".asked[open]")) each.open = false;
  asked.prepend(made);
  try {
    await follow(api("memories", data.memory_id, "ask"), { question }, ({ progress, result }) => {
      if (progress?.answer) made.write(progress.answer);
      else if (progress) byId("said").textContent = progress.note ?? `${progress.stage}: ${progress.done} of ${progress.total}`;
      if (result) made.finish(result);
    });
    input.value = "";
    change(answered());
    if (made.answer?.citations.length) open(made.answer.citations[0]);
    byId("said").textContent = made.answer?.answer ?? "";
  } catch (error) {
    made.write(error.message);
    made.classList.add("failed");
  }
  send.disabled = false;
});
