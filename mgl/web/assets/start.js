// The address says what is open; what is opened is written to the address.

const named = new Map();
for (const each of elements.values()) named.set(`${each.node ? "node" : "edge"}=${each.id}`, each);

function readAddress() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const step = Number.parseInt(wanted.get("step"), 10);
  if (Number.isFinite(step)) goTo(step - 1);
  for (const kind of ["node", "edge"]) {
    if (wanted.has(kind)) select(named.get(`${kind}=${wanted.get(kind)}`) || null, "address");
  }
}

addEventListener("hashchange", readAddress);
document.addEventListener("click", (event) => {
  const chip = event.target.closest("a.chip");
  if (!chip || chip.hash !== location.hash) return;
  event.preventDefault();
  readAddress();
});
onChange((before, origin) => {
  if (state.selected === before.selected || origin === "address") return;
  const address = state.selected ? hash(state.selected) : "#";
  history.replaceState(null, "", address);
});

new ResizeObserver(() => {
  if (camera.fitted) fit();
  redrawNow();
}).observe(stage);

buildGraph();
buildText();
buildKinds();
buildReplay();
fit();
change(answered(), "start");
redrawNow();
readAddress();
document.documentElement.dataset.ready = "true";
