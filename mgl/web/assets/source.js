// Where the page has its data from: the file that it is, or the server that it came from.

import { button, byId, make } from "./dom.js";

const held = document.getElementById("data");
const parts = held ? JSON.parse(held.textContent) : {};
const KEY = "mgl-key";

/** Whether a server answers; else the page is a file, which holds all that it shows. */
export const live = !held;
/** The id of the memory; first what the address has, which may be a name. */
let memory = new URLSearchParams(location.search).get("id") ?? "";
export const api = (...path) => `/api/${path.map(encodeURIComponent).join("/")}`;

/** A part of the memory's data; null where a file does not hold it. */
export async function load(part) {
  return live ? fetchJson(api("memories", memory, part)) : (parts[part] ?? null);
}

/** All that the page shows, unless it is still of this version. */
export async function loadNews(version) {
  const answer = await send(api("memories", memory, "page"), undefined, "application/json", "GET", { "if-none-match": `"${version}"` });
  return answer.status === 304 ? null : answer.json();
}

/** All that the page shows; where it cannot be had, say why, and try again when that is asked for. */
export async function loadPage() {
  for (;;) {
    if (live) byId("title").textContent = "Loading…";
    try {
      const page = await load("page");
      memory = page.memory_id;
      if (live) history.replaceState(null, "", `?${new URLSearchParams({ id: memory })}${location.hash}`);
      return page;
    } catch (error) {
      await showFault("This memory cannot be shown", error.message);
    }
  }
}

/** Do something every so many milliseconds while the page is in sight, and when it comes into sight,
    unless it is still being done; tell of a failure, or of none. It is tried again. */
export function whileSeen(period, act, tell) {
  let isBusy = false;
  const attempt = async () => {
    if (isBusy || document.visibilityState !== "visible") return;
    isBusy = true;
    try {
      await act();
      tell("");
    } catch (error) {
      tell(error.message);
    }
    isBusy = false;
  };
  setInterval(attempt, period);
  document.addEventListener("visibilitychange", attempt);
}

/** Say what failed, until somebody wants to try again. */
function showFault(title, message) {
  return new Promise((done) => {
    const again = button("Try again", () => (box.remove(), done()), { class: "main" });
    const box = make(
      "dialog",
      { class: "key", "aria-labelledby": "fault-title" },
      make("h1", { id: "fault-title" }, title),
      make("p", { class: "wrong", role: "alert" }, message),
      make("p", { class: "line" }, again, make("a", { href: "./" }, "All memories")),
    );
    box.addEventListener("cancel", (event) => event.preventDefault());
    document.body.append(box);
    box.showModal();
  });
}

export async function fetchJson(path, body, method) {
  const answer = await send(path, body, "application/json", method);
  return answer.json();
}

/** Post a body, and hand over each event of the answer as it comes. */
export async function follow(path, body, hear) {
  const answer = await send(path, body, "text/event-stream");
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch(lose);
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: {")) continue;
      const event = JSON.parse(line.slice(6));
      if (event.error) throw new Error(event.error.message);
      hear(event);
    }
  }
}

/** A connection that fails says nothing that a reader could use. */
function lose() {
  throw new Error("The server does not answer. Is `mgl up` still running?");
}

async function send(path, body, accept, method = body === undefined ? "GET" : "POST", headers = {}) {
  for (;;) {
    const key = sessionStorage.getItem(KEY) ?? (await askKey(""));
    const answer = await fetch(path, {
      method,
      headers: { authorization: `Bearer ${key}`, accept, ...headers },
      body: body === undefined || body instanceof Blob ? body : JSON.stringify(body),
    }).catch(lose);
    if (answer.ok || answer.status === 304) return answer;
    const said = await answer.json().catch(() => null);
    const message = said?.error?.message ?? `the server said ${answer.status}`;
    if (answer.status !== 401) throw Object.assign(new Error(message), { param: said?.error?.param });
    sessionStorage.removeItem(KEY);
    await askKey(message);
  }
}

let asking = null;

/** Ask for the key, once for all requests that wait for it. */
function askKey(wrong) {
  asking ??= new Promise((done) => {
    const input = make("input", { id: "key", type: "password", autocomplete: "off", required: true });
    const form = make(
      "form",
      {},
      make("h1", { id: "key-title" }, "mgl"),
      make("label", { for: "key" }, "The key that `mgl up` printed"),
      input,
      make("p", { class: "wrong", role: "alert" }, wrong),
      make("button", {}, "Open"),
    );
    const box = make("dialog", { class: "key", "aria-labelledby": "key-title" }, form);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      sessionStorage.setItem(KEY, input.value.trim());
      box.remove();
      asking = null;
      done(input.value.trim());
    });
    box.addEventListener("cancel", (event) => event.preventDefault());
    document.body.append(box);
    box.showModal();
  });
  return asking;
}
