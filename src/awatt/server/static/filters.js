// Beside the table: search, filters and thresholds, which work on the scores that the page has already.

import * as api from "./api.js";
import { byId, el, fill, number, percent } from "./dom.js";
import { act, aspects, changed, colour, common, onChange, recount, state } from "./state.js";
import { labelNext } from "./table.js";

const box = byId("filters");
let opened = !matchMedia("(max-width: 760px)").matches;
const search = el("input", { type: "search", id: "search", placeholder: "Search ( / )", "aria-label": "Search the sentences", oninput: () => set({ text: search.value, only: null }) });
const body = el("div", {});
box.append(search, body);

export function set(change) {
  state.filter = { ...state.filter, ...change };
  recount();
  byId("table").scrollTop = 0;
  changed();
}

const pick = (kind, label, count) => el("button", { className: "pick", "aria-pressed": String(state.filter.kind === kind && !state.filter.aspect && !state.filter.only),
  onclick: () => set({ kind, aspect: null, only: null }) }, el("span", { className: "name" }, label), el("span", { className: "count" }, number(count)));

function slider(label, value, own, preview, store) {
  const shown = el("output", {}, value.toFixed(2));
  const input = el("input", { type: "range", min: 0, max: 1, step: 0.01, "aria-label": label, className: own ? "own" : "",
    oninput: () => { shown.textContent = Number(input.value).toFixed(2); preview(Number(input.value)); recount(); counts(); changed("threshold"); },
    onchange: () => act(store(Number(input.value))) });
  input.value = value;
  return el("span", { className: "slider" }, input, shown,
    el("button", { className: "reset", title: "Back to the common threshold", "aria-label": `Reset ${label}`, disabled: !own, onclick: () => act(store(null)) }, "↺"));
}

function counts() {
  const total = Math.max(1, state.texts.length);
  aspects().forEach((aspect, i) => { const node = byId(`count-${aspect.id}`); if (node) node.textContent = `${number(state.counts[i])} · ${percent(state.counts[i] / total)}`; });
}

function draw() {
  if (!state.project) return;
  const total = Math.max(1, state.texts.length);
  if (search.value !== state.filter.text) search.value = state.filter.text;
  fill(body,
    el("button", { className: "main next", onclick: labelNext, disabled: !aspects().length }, "Label next ", el("kbd", {}, "N")),
    el("div", { className: "picks" },
      pick("all", "All", state.texts.length), pick("none", "None found", state.none), pick("uncertain", "Uncertain", state.unsure), pick("said", "Said by you", state.said),
      state.filter.only ? el("button", { className: "pick", "aria-pressed": "true" }, el("span", { className: "name" }, "To label"), el("span", { className: "count" }, number(state.filter.only.size))) : null),
    el("details", { open: opened, ontoggle: (event) => { opened = event.target.open; } }, el("summary", {}, "Thresholds and aspects"),
    el("h2", {}, "Threshold of all"),
    slider("Threshold of all aspects", common(), state.project.threshold !== null, (v) => { state.project.threshold = v; }, (v) => api.patch("/v1/project/settings", { threshold: v })),
    el("h2", {}, "Aspects"),
    ...aspects().map((aspect, i) => el("div", { className: "aspect", colour: colour(i) },
      el("button", { className: "pick", "aria-pressed": String(state.filter.aspect === aspect.id), onclick: () => set({ aspect: state.filter.aspect === aspect.id ? null : aspect.id, kind: "all", only: null }) },
        el("i", { className: "dot" }), el("span", { className: "name" }, aspect.name), el("span", { className: "count", id: `count-${aspect.id}` }, `${number(state.counts[i])} · ${percent(state.counts[i] / total)}`)),
      slider(`Threshold of ${aspect.name}`, aspect.threshold ?? common(), aspect.threshold !== null, (v) => { aspect.threshold = v; }, (v) => api.patch(`/v1/aspects/${aspect.id}`, { threshold: v })))),
    !aspects().length ? el("p", { className: "hint" }, "Add aspects with a few example sentences each, in the tab Aspects.") : null));
}

onChange((what) => { if (what === "all") draw(); });
