// A call of the model with its words, and what led to an answer or a reply.

import { button, fill, make, number, pairList, shorten } from "./dom.js";
import { api, fetchJson } from "./source.js";
import { data, onNews } from "./state.js";

export const outcome = (name) => make("span", { class: `outcome ${name}` }, name);

export const spent = ({ input_tokens: read, output_tokens: written, seconds }) =>
  `${number.format(read ?? 0)} tokens read, ${number.format(written ?? 0)} written, ${seconds.toFixed(1)} s`;

export function callPanel(call) {
  const facts = [["stage", call.stage], ["outcome", call.outcome], ["model", call.model], ["spent", spent(call)], ["stopped", call.finish_reason], ["constraint", call.way], ["error", call.error]];
  const message = ({ role, content }) => [make("h4", {}, role), make("pre", { dir: "auto", tabindex: 0 }, content)];
  return make(
    "div",
    { class: "call" },
    pairList(facts.filter(([, value]) => value)),
    ...call.messages.flatMap(message),
    make("h4", {}, "reply"),
    make("pre", { class: "reply", dir: "auto", tabindex: 0 }, call.reply ?? "None came back."),
  );
}

/** A row that says more when it is opened. */
export function opening(head, more) {
  const made = make("details", {}, make("summary", {}, ...head));
  made.addEventListener("toggle", () => {
    if (made.open && made.childElementCount === 1) made.append(...more());
  });
  return made;
}

/** Show in a place what an answer or reply was made from, and by which calls; `wanted` names its
    question or turn, and `show` brings a passage into sight. */
export async function showTrace(place, wanted, show) {
  const made = make("div", { class: "traced" }, make("p", { class: "note" }, "Loading…"));
  made.again = () => showTrace(place, wanted, show);
  place.replaceChildren(made);
  try {
    const { retrieved, calls } = await fetchJson(`${api("memories", data.memory_id, "trace")}?${new URLSearchParams(wanted)}`);
    const passages = make("ol", { class: "retrieved" });
    const row = ({ node_id: id, start, end, quote, speaker }) => {
      const made = button("", () => show(start, end), { class: "hit", dir: "auto" });
      made.append(make("small", {}, id), " ", speaker ? `${speaker}: ` : "", shorten(quote, 160));
      return make("li", {}, made);
    };
    fill(passages, retrieved, row, 10);
    const head = (call) => [make("b", {}, call.stage), " ", outcome(call.outcome), " ", make("small", {}, `${call.model} · ${spent(call)}`)];
    made.replaceChildren(
      make("h4", {}, `Retrieved (${number.format(retrieved.length)})`),
      passages,
      make("h4", {}, `Calls (${number.format(calls.length)})`),
      ...calls.map((call) => opening(head(call), () => [callPanel(call)])),
    );
  } catch (error) {
    made.replaceChildren(make("p", { class: "wrong", role: "alert" }, error.message), button("Try again", made.again));
  }
}

/** Traces that are open may show what was deleted. */
onNews((isCut) => {
  if (isCut) for (const each of document.querySelectorAll(".traced")) each.again();
});
