// Next to the table: search, filters and thresholds, applied to the scores that the page has already loaded.

import * as api from "./api.js";
import { byId, el, fill, number, percent } from "./dom.js";
import { NO_FILTER, act, aspects, changed, colour, commonThreshold, isGuess, isLearned, onChange, recount, state, setFilter as set, thresholdOf, thresholdText } from "./state.js";
import { labelNext } from "./queue.js";
import { scopeBar } from "./scope-bar.js";

const box = byId("filters");
let opened = !matchMedia("(max-width: 760px)").matches;
const next = el("button", { className: "main next", id: "next", onclick: labelNext }, "Label next ", el("kbd", {}, "N"));
const search = el("input", { type: "search", id: "search", placeholder: "Search ( / )", "aria-label": "Search the sentences", oninput: () => set({ text: search.value, only: null }) });
const body = el("div", {});
box.append(el("div", { className: "find" }, search, next), scopeBar("in-list", true), body);

// Several aspects: the sentences that mention all of them.
const toggleAspect = (id) => set({ aspects: state.filter.aspects.includes(id) ? state.filter.aspects.filter((each) => each !== id) : [...state.filter.aspects, id],
  kind: state.filter.kind === "none" ? "all" : state.filter.kind, only: null });

// The sentences whose aspects the last action changed.
const CHANGED = "Just changed";
export const showChanged = () => set({ ...NO_FILTER, only: state.changes.ids, title: CHANGED });

const isUnfiltered = () => !(state.filter.aspects.length || state.filter.only || state.filter.area || state.filter.where.length);
// "All" removes every filter; the others combine with what is chosen.
const pick = (kind, label, count) => el("button", { className: "pick", id: `pick-${kind}`, "aria-pressed": String(state.filter.kind === kind && (kind !== "all" || isUnfiltered())),
  onclick: () => set(kind === "all" ? { ...NO_FILTER } : { kind: state.filter.kind === kind ? "all" : kind, only: null, ...kind === "none" ? { aspects: [] } : {} }) }, el("span", { className: "name" }, label), el("span", { className: "count" }, number(count)));

// What a slider shows is a preview until the server has responded; while one is dragged, none of them is redrawn.
let dragging = false;
const release = () => { if (dragging) { dragging = false; if (!state.previews.size) draw(); } };
addEventListener("pointerup", release);
addEventListener("pointercancel", release);

function slider(id, label, reset, value, own, store) {
  const shown = el("output", {}, thresholdText(value));
  const move = () => {
    shown.textContent = Number(input.value).toFixed(2);
    state.previews.set(id, { value: Number(input.value), sent: false });
    recount();
    counts();
    changed("threshold");
  };
  const send = () => { // also without a "change" event, which a slider moved back to its old value does not fire
    const mine = state.previews.get(id);
    if (!mine || mine.sent) return;
    mine.sent = true;
    const finished = () => { if (state.previews.get(id) === mine) state.previews.delete(id); };
    act(() => store(mine.value).finally(finished).catch((error) => { recount(); changed(); throw error; }));
  };
  const input = el("input", { type: "range", id: `threshold-${id}`, min: 0, max: 1, step: 0.01, "aria-label": label, className: own ? "own" : "",
    oninput: move, onchange: send, onpointerdown: () => { dragging = true; }, onpointerup: send, onpointercancel: send, onblur: send });
  input.value = value;
  return el("span", { className: "slider" }, input, shown,
    el("button", { className: "reset", id: `reset-${id}`, title: reset, "aria-label": `Reset: ${label}`, disabled: !own, onclick: () => { act(() => store(null)); input.focus(); } }, "↺"));
}

const countText = (aspect, i, total) => (isLearned(aspect) || state.counts[i] ? `${number(state.counts[i])} · ${percent(state.counts[i] / total)}` : "not learned");

function counts() {
  const total = Math.max(1, state.inScope);
  aspects().forEach((aspect, i) => { const node = byId(`count-${aspect.id}`); if (node) node.textContent = countText(aspect, i, total); });
}

function draw() {
  if (!state.project) return;
  const total = Math.max(1, state.inScope);
  if (search.value !== state.filter.text) search.value = state.filter.text;
  next.disabled = !aspects().length || !state.texts.length;
  fill(body,
    el("div", { className: "picks" },
      pick("all", "All", state.texts.length), ...aspects().some(isLearned) ? [pick("none", "None found", state.none), pick("uncertain", "Uncertain", state.uncertain)] : [], pick("labelled", "Labelled", state.labelled), state.noted || state.filter.kind === "noted" ? pick("noted", "With a note", state.noted) : null,
      state.filter.only ? el("button", { className: "pick", id: "pick-only", "aria-pressed": "true", onclick: () => { set({ only: null }); byId("pick-all").focus(); } }, el("span", { className: "name" }, state.filter.title), el("span", { className: "count" }, number(state.filter.only.size))) : null,
      state.changes?.ids.size && state.filter.title !== CHANGED ? el("button", { className: "pick", id: "pick-changed", "aria-pressed": "false", onclick: showChanged }, el("span", { className: "name" }, CHANGED), el("span", { className: "count" }, number(state.changes.ids.size))) : null),
    el("details", { open: opened, ontoggle: (event) => { opened = event.target.open; } }, el("summary", { id: "thresholds" }, "Thresholds and aspects"),
    el("h2", {}, "Threshold for all aspects"),
    slider("all", "Threshold for all aspects", "Use the model's own threshold", commonThreshold(), state.project.threshold !== null, (v) => api.patch("/v1/project/settings", { threshold: v })),
    aspects().length ? el("h2", {}, "Aspects") : null,
    ...aspects().map((aspect, i) => el("div", { className: "aspect", colour: colour(i) },
      el("button", { className: "pick", id: `pick-${aspect.id}`, title: isGuess(aspect) ? `${aspect.name}: guessed from its name` : aspect.name, "aria-pressed": String(state.filter.aspects.includes(aspect.id)), onclick: () => toggleAspect(aspect.id) },
        el("i", { className: "dot" }), el("span", { className: "name" }, isGuess(aspect) ? `${aspect.name}?` : aspect.name), el("span", { className: "count", id: `count-${aspect.id}` }, countText(aspect, i, total))),
      slider(aspect.id, `Threshold of ${aspect.name}`, "Use the threshold for all aspects", thresholdOf(aspect), aspect.threshold !== null, (v) => api.patch(`/v1/aspects/${aspect.id}`, { threshold: v }))))));
}

onChange((what) => { if (what === "all") dragging || state.previews.size ? counts() : draw(); });
