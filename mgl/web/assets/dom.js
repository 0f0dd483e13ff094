// Elements and words. What is put in is text: no function here reads markup.

export const byId = (id) => document.getElementById(id);
export const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;

const SVG = "http://www.w3.org/2000/svg";

/** A new element with attributes and children; children that are strings are text. */
export function make(name, attributes = {}, ...children) {
  return dress(document.createElement(name), attributes, children);
}

export function draw(name, attributes = {}, ...children) {
  return dress(document.createElementNS(SVG, name), attributes, children);
}

function dress(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/** A button that does something. */
export function button(name, act, attributes = {}) {
  const made = make("button", { type: "button", ...attributes }, name);
  made.addEventListener("click", act);
  return made;
}

/** A list of names, each with its value. */
export function pairList(pairs) {
  const row = ([name, value]) => make("div", {}, make("dt", {}, name), make("dd", { dir: "auto" }, value));
  return make("dl", {}, ...pairs.map(row));
}

const CLOCK = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const zoneless = (time) => new Date(time.replace(/(Z|[+-]\d\d:?\d\d)$/, ""));

/** A time of day, or the day with it, as the clock showed it where it was noted. */
export function moment(time, withDay = false) {
  const at = zoneless(time);
  const title = at.toLocaleString("en-GB", { dateStyle: "full", timeStyle: "short" });
  const day = withDay ? `${at.toLocaleDateString("en-GB", { dateStyle: "medium" })}, ` : "";
  return make("time", { datetime: time, title }, `${day}${at.toLocaleTimeString("en-GB", CLOCK)}`);
}

/** A day and a time of day here, of a time that has a zone. */
export function localMoment(time) {
  const at = new Date(time);
  const title = at.toLocaleString("en-GB", { dateStyle: "full", timeStyle: "short" });
  const day = at.toLocaleDateString("en-GB", { dateStyle: "medium" });
  return make("time", { datetime: time, title }, `${day}, ${at.toLocaleTimeString("en-GB", CLOCK)}`);
}

export const number = new Intl.NumberFormat("en");

const several = (noun) => (noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`);
export const many = (count, noun) => `${number.format(count)} ${count === 1 ? noun : several(noun)}`;

export const shorten = (text, length) => {
  const signs = [...text.slice(0, 8 * length).replace(/\s+/g, " ").trim()];
  return signs.length > length ? signs.slice(0, length - 1).join("") + "…" : signs.join("");
};

/** A long list, some of it at first, and a button for more. */
export function fill(list, items, row, most = 200) {
  list.append(...items.slice(0, most).map(row));
  if (items.length <= most) return;
  const rest = items.slice(most);
  const more = make("li", { class: "more" });
  more.append(
    button(`Show more (${number.format(rest.length)})`, () => {
      more.remove();
      fill(list, rest, row, most);
    }),
  );
  list.append(more);
}
