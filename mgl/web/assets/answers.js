// What was asked and answered, and the box to ask more, or to say something that is remembered.

import { opening, showTrace } from "./calls.js";
import { byId, button, make, many, number } from "./dom.js";
import { api, follow, live } from "./source.js";
import { change, data, findDeleted, findNode, isHeld, onNews, renew, select, state } from "./state.js";
import { bringSource, showRange } from "./text.js";

const asked = byId("asked");
const QUOTE = 400;

export function buildAnswers() {
  asked.append(...data.answers.map((answer, index) => panel(answer, index === data.answers.length - 1)));
  listUnanswered();
  if (!asked.childElementCount && !live) asked.append(make("p", { class: "note" }, "No question was asked of this memory."));
  byId("ask").hidden = !live;
  for (const id of ["say", "say-note"]) byId(id).hidden = !data.grows;
}

function listUnanswered() {
  for (const each of asked.querySelectorAll(".unanswered")) each.remove();
  const answered = new Set(data.answers.map((answer) => answer.question));
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
}

/** Take away the answers and replies that are no longer stored, and add what was asked elsewhere. */
onNews(() => {
  const missing = new Map(data.answers.map((answer) => [answer.question, answer]));
  const deleted = findDeleted();
  const isGone = (said) => ("turn" in said ? deleted.has(said.turn) || deleted.has(said.reply) : missing.get(said.question)?.answer !== said.answer);
  const panels = [...asked.querySelectorAll(".asked")].filter((each) => each.answer);
  const gone = new Set(panels.filter((each) => isGone(each.answer)));
  for (const each of gone) each.remove();
  for (const each of panels) if (!gone.has(each) && !("turn" in each.answer)) missing.delete(each.answer.question);
  asked.prepend(...[...missing.values()].map((answer) => panel(answer, false)));
  listUnanswered();
  Object.assign(state, answered());
});

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
  made.addEventListener("toggle", () => {
    change(answered());
    if (made.open) showFirst(made.answer);
  });
  made.write = (words) => said.replaceChildren(words);
  made.finish = (whole) => {
    made.answer = whole;
    made.write(whole.answer);
    ground.replaceChildren(...basis(whole));
  };
  if (answer.citations) made.finish(answer);
  return made;
}

function basis({ question, reply, confidence, citations, reading, marks, trace, usage }) {
  const notes = [...marks];
  if (reading) notes.unshift(reading);
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
    live && reply !== null ? traceRow(reply ? { turn: reply } : { question }) : "",
  ];
}

/** What was found for an answer, and the calls that made it: prompt, model, time and tokens. */
function traceRow(wanted) {
  const place = make("div", {});
  const made = opening(["Retrieved and calls"], () => {
    showTrace(place, wanted, showRange);
    return [place];
  });
  made.className = "trace";
  return made;
}

function chip(citation, index) {
  const node = findNode(citation.node_id);
  const where = data.sections.find(({ start, end }) => start <= citation.start && citation.start < end)?.label;
  const name = node?.label ?? (citation.speaker ? `${citation.speaker}: ${citation.quote.slice(0, 60)}` : citation.node_id);
  const inner = [
    make("b", {}, String(index + 1)),
    " ",
    make("bdi", {}, name),
    " ",
    make("small", {}, [where, `${number.format(citation.start)}–${number.format(citation.end)}`].filter(Boolean).join(", ")),
  ];
  const made = button("", () => (open(citation), bringSource()), { class: "chip", title: citation.quote.slice(0, QUOTE) });
  made.append(...inner);
  return make("li", {}, made);
}

/** Open the source of a citation beside the answer. */
function open(citation) {
  const node = findNode(citation.node_id);
  if (node) select(node);
  showRange(citation.start, citation.end);
}

/** Bring the first passage that an answer cites into sight. */
function showFirst(answer) {
  if (answer?.citations.length) showRange(answer.citations[0].start, answer.citations[0].end);
}

/** Open the text at what the answer in sight cites. */
export const openCited = () => showFirst(asked.querySelector(".asked[open]")?.answer);

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
  const words = input.value.trim();
  const buttons = [byId("send"), byId("say")];
  if (!words || buttons[0].disabled) return;
  const act = event.submitter === byId("say") ? tellMemory : askMemory;
  for (const each of buttons) each.disabled = true;
  const made = panel({ question: words }, true);
  made.write("…");
  for (const each of asked.querySelectorAll(".asked[open]")) each.open = false;
  asked.prepend(made);
  try {
    await act(words, made);
    input.value = "";
  } catch (error) {
    made.write(error.message);
    made.classList.add("failed");
  }
  for (const each of buttons) each.disabled = false;
});

async function askMemory(question, made) {
  await follow(api("memories", data.memory_id, "ask"), { question }, ({ progress, result }) => {
    if (progress?.answer) made.write(progress.answer);
    else if (progress) byId("said").textContent = progress.note ?? `${progress.stage}: ${progress.done} of ${progress.total}`;
    if (result) made.finish(result);
  });
  if (!made.answer) throw new Error("The answer was cut off. Ask again.");
  change(answered());
  if (made.answer?.citations.length) open(made.answer.citations[0]);
  byId("said").textContent = made.answer?.answer ?? "";
}

/** Say something to the memory, and show it with its reply, there and in the text. */
async function tellMemory(words, made) {
  const messages = [{ role: "user", content: words }];
  const request = { model: `mgl/${data.memory}`, metadata: { memory: data.memory_id }, messages, stream: true };
  const said = { question: words, answer: "", turn: null, confidence: null, reading: null, citations: [], marks: [], trace: [], paths: [] };
  await follow("/v1/chat/completions", request, ({ choices: [{ delta }] }) => {
    said.answer += delta.content ?? "";
    made.write(said.answer || "…");
    if (delta.turn) Object.assign(said, { turn: delta.turn, citations: delta.citations, marks: [`remembered as turn ${delta.turn}`], reply: delta.reply });
  });
  await renew();
  made.finish(said);
  change(answered(), "start");
  const { start, end } = data.turns.at(-1);
  showRange(start, end);
  byId("said").textContent = said.answer;
  byId("question").focus();
}
