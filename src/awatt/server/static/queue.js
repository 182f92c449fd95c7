// A list of sentences to label one after the other: how many are done, skip and back. Finished ones leave it.

import * as api from "./api.js";
import { byId, counted, el, fill, notify } from "./dom.js";
import { NO_FILTER, applyLabels, labelOf, onChange, reload, setFilter, state } from "./state.js";
import { choose } from "./table.js";

const bar = byId("queue"), NEXT = 20;
let queue = null, loading = false; // {ids, title, finished, visited, only, again, end}; and while the next list is being made
export const isLoading = () => loading;
export const inQueue = () => queue !== null;

// ``again`` makes the next list, ``end`` is said after the last sentence; in a ``blind`` list, nothing is shown of what others have said.
export function startQueue(ids, title, { again = null, end = "", blind = false } = {}) {
  queue = { ids: [...ids], title, finished: new Set(), visited: [], only: new Set(ids), again, end };
  state.blind = new Set(blind ? queue.ids.map((id) => state.texts[state.rowOf.get(id)]) : []);
  state.filter = { ...NO_FILTER, only: queue.only, title };
  state.selected.clear(); // keys act on the sentence that is shown
  applyLabels();
  byId("table").scrollTop = 0;
  choose(state.rows[0]);
}

const isDone = (id) => queue.finished.has(id) && Boolean(labelOf(state.rowOf.get(id)));
const remaining = () => queue.ids.filter((id) => !isDone(id));

function refilter() {
  const { chosen } = state;
  queue.only = new Set(remaining());
  setFilter({ ...NO_FILTER, only: queue.only, title: queue.title });
  if (state.rows.includes(chosen)) choose(chosen, false);
}

// After the label of a sentence: it leaves the list, and the next one is chosen.
export function finish(row) {
  const place = state.rows.indexOf(row), next = state.rows[place + 1] ?? state.rows[place - 1];
  queue.finished.add(state.ids[row]);
  queue.visited.push(state.ids[row]);
  refilter();
  if (state.rows.includes(next)) { choose(next); return; }
  if (state.rows.length) return;
  byId(queue.again ? "queue-more" : "queue-leave")?.focus();
  notify(queue.end);
}

// After the labels of a selection: the sentences leave the list.
export function finishMany(rows) {
  for (const row of rows) queue.finished.add(state.ids[row]);
  queue.visited.push(...rows.map((row) => state.ids[row]));
  state.selected.clear();
  refilter();
  if (state.rows.length) choose(state.rows[0]);
  else byId(queue.again ? "queue-more" : "queue-leave")?.focus();
}

// What is shown in place of a list that is done.
export function endOfList() {
  if (!queue || remaining().length) return null;
  return [`This list is done: ${counted(queue.ids.length, "sentence")} labelled.`, queue.end, `Choose ${queue.again ? `Next ${NEXT} to go on, or ` : ""}Leave to see all sentences.`].filter(Boolean).join(" ");
}

// The list after this one if it is done; otherwise the most useful sentences.
export const nextList = () => (queue?.again && !remaining().length ? queue.again() : labelNext());

export function skip() {
  const row = state.chosen, place = state.rows.indexOf(row);
  if (!queue || row === null) return;
  if (labelOf(row)) { finish(row); return; } // labelled with a key, and left
  queue.visited.push(state.ids[row]);
  choose(state.rows[(place + 1) % state.rows.length]);
  drawBar();
}

export function back() {
  const id = queue?.visited.pop();
  if (id === undefined) return;
  queue.finished.delete(id);
  refilter();
  choose(state.rowOf.get(id));
}

function leave() {
  setFilter({ only: null });
  byId("table").focus();
}

function drawBar() {
  bar.hidden = !queue;
  if (!queue) return;
  const total = queue.ids.length, done = total - remaining().length, all = done === total;
  fill(bar, el("strong", {}, queue.title), el("progress", { max: total, value: done, "aria-label": "Labelled so far" }), el("span", { id: "queue-count", role: "status" }, `${done} of ${total}`),
    all ? queue.again && el("button", { className: "main", id: "queue-more", onclick: queue.again }, `Next ${NEXT} `, el("kbd", {}, "N")) : el("button", { id: "queue-skip", onclick: skip }, "Skip ", el("kbd", {}, "S")),
    el("button", { id: "queue-back", disabled: !queue.visited.length, onclick: back }, "Back ", el("kbd", {}, "B")),
    el("button", { id: "queue-leave", title: "Show all sentences again", onclick: leave }, "Leave"));
}

// The sentences from whose labels the detector learns most.
export async function labelNext() {
  if (loading) return;
  loading = true;
  const { filter, chosen, reviews } = state, view = document.body.dataset.view;
  try {
    const { suggestions } = await api.post("/v1/suggest", { k: NEXT });
    if (filter !== state.filter || chosen !== state.chosen || view !== document.body.dataset.view || document.activeElement.id === "search") return; // the user has moved on
    if (!suggestions.length) { notify("There is nothing left to label."); return; }
    if (reviews !== state.reviews || !suggestions.some((s) => state.rowOf.has(s.id))) { await reload(); return; } // suggestions for other reviews
    startQueue(suggestions.map((s) => s.id), "To label", { again: labelNext });
    notify(`The most useful sentences first. ${matchMedia("(max-width: 760px), (pointer: coarse)").matches ? "Tap the aspects to correct them, then Accept." : "Correct them with the number keys, accept them with Enter."}`);
  } catch (error) {
    notify(error.message, true);
  } finally {
    loading = false;
  }
}

// Another filter ends the list; an undone label brings its sentence back into it.
onChange((what) => {
  if (!queue || what !== "all") return;
  if (state.filter.only !== queue.only) {
    queue = null;
    if (state.blind.size) { state.blind = new Set(); applyLabels(); return; }
  } else if (remaining().length > queue.only.size) { refilter(); return; }
  drawBar();
});
