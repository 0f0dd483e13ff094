// What changed between two texts, word by word.

import { make } from "./dom.js";

const MOST_WORDS = 600; // beyond which two texts stand one after the other

/** Two texts as one: what went, what came, and what stayed. */
export function diff(before, now) {
  const [one, other] = [before, now].map((text) => text.split(/(?<=\s)/));
  if (one.length > MOST_WORDS || other.length > MOST_WORDS) return [make("del", {}, before), " ", make("ins", {}, now)];
  const length = longest(one, other);
  const parts = [];
  let [at, to] = [0, 0];
  while (at < one.length || to < other.length) {
    if (at < one.length && to < other.length && one[at].trim() === other[to].trim()) {
      parts.push(["", other[to++]]);
      at++;
    } else if (to >= other.length || (at < one.length && length[at + 1][to] >= length[at][to + 1])) parts.push(["del", one[at++]]);
    else parts.push(["ins", other[to++]]);
  }
  return join(parts);
}

/** The length of the longest common subsequence of the words from each place on. */
function longest(one, other) {
  const length = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
  for (let at = one.length - 1; at >= 0; at--) {
    for (let to = other.length - 1; to >= 0; to--) {
      const same = one[at].trim() === other[to].trim();
      length[at][to] = same ? length[at + 1][to + 1] + 1 : Math.max(length[at + 1][to], length[at][to + 1]);
    }
  }
  return length;
}

function join(parts) {
  const runs = [];
  for (const [kind, word] of parts) {
    if (runs.at(-1)?.[0] === kind) runs.at(-1)[1] += word;
    else runs.push([kind, word]);
  }
  return runs.flatMap(([kind, words]) => [kind ? make(kind, {}, words) : words, /\s$/.test(words) ? "" : " "]);
}
