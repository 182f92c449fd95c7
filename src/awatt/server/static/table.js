// The table of sentences. Only the visible rows exist, so that 100,000 scroll like 100.

import * as api from "./api.js";
import { byId, el, emptyState, fill, notify } from "./dom.js";
import { marked, spans } from "./marked.js";
import { aspects, changed, colour, found, hasScores, label, labelOf, onChange, recount, reload, requestWords, saving, score, scoreText, state, thresholdOf } from "./state.js";

const table = byId("table"), rows = byId("rows"), detail = byId("detail");
const height = () => (matchMedia("(max-width: 760px)").matches ? 88 : 60);
let drawScheduled = false, loading = false, drawnRows = new Map(); // the rows that exist: {node, key} by sentence

function chips(row) {
  const all = aspects(), here = found(row);
  const list = here.map((a) => el("span", { className: "chip", title: a.name, colour: colour(all.indexOf(a)) }, `${a.name} `, el("small", {}, scoreText(row, a))));
  if (!hasScores() && !labelOf(row)) list.push(el("span", { className: "chip none pending", title: "Not detected yet" }, "…"));
  else if (all.length && !list.length) list.push(el("span", { className: "chip none" }, "none"));
  return list;
}

// A row is rebuilt only if its key, and so its look, has changed: most rows stay while the user scrolls or moves a threshold.
function drawRow(row, place) {
  const chosen = row === state.chosen, labelled = Boolean(labelOf(row));
  const key = [state.reviews, state.learned, state.fingerprints[row], chosen, labelled, saving(row), hasScores(), state.words.has(state.ids[row])].join(" ");
  const kept = drawnRows.get(row), same = kept?.key === key;
  const node = same ? kept.node : makeRow(row, chosen, labelled);
  requestWords(row);
  node.setAttribute("aria-posinset", place + 1);
  node.setAttribute("aria-setsize", state.rows.length);
  node.style.setProperty("transform", `translateY(${place * height()}px)`);
  return { node, key };
}

function makeRow(row, chosen, labelled) {
  return el("div", { className: `row${chosen ? " chosen" : ""}${labelled ? " labelled" : ""}${saving(row) ? " saving" : ""}`, role: "option", id: `row-${row}`,
    "aria-selected": String(chosen), onclick: () => choose(row) },
    el("div", { className: "text" }, ...marked(row)),
    el("div", { className: "chips" }, labelled && el("span", { className: "person", title: "Labelled by you" }, "✓", el("span", { className: "spoken" }, " labelled by you: ")), ...chips(row)));
}

export function draw() {
  drawScheduled = false;
  const tall = height(), first = Math.max(0, Math.floor(table.scrollTop / tall) - 6);
  const last = Math.min(state.rows.length, Math.ceil((table.scrollTop + table.clientHeight) / tall) + 6);
  rows.style.setProperty("height", `${state.rows.length * tall}px`);
  const shown = new Map();
  for (let place = first; place < last; place++) shown.set(state.rows[place], drawRow(state.rows[place], place));
  for (const [row, { node }] of drawnRows) if (shown.get(row)?.node !== node) node.remove();
  let next = rows.firstChild;
  for (const { node } of shown.values()) {
    if (node === next) next = next.nextSibling;
    else rows.insertBefore(node, next);
  }
  drawnRows = shown;
  const empty = byId("nothing");
  empty.hidden = state.rows.length > 0;
  if (!state.texts.length) fill(empty, emptyState("No reviews are loaded yet.", "start", "Load reviews"));
  else if (!state.rows.length) fill(empty, el("p", { className: "empty" }, "No sentence matches the filter."));
  const there = state.chosen !== null && byId(`row-${state.chosen}`);
  if (there) table.setAttribute("aria-activedescendant", `row-${state.chosen}`);
  else table.removeAttribute("aria-activedescendant");
}

const scheduleDraw = () => { if (!drawScheduled) { drawScheduled = true; requestAnimationFrame(draw); } };

export function choose(row, focus = true) {
  state.chosen = row;
  const place = state.rows.indexOf(row), tall = height();
  if (place >= 0) {
    if (place * tall < table.scrollTop) table.scrollTop = place * tall;
    if ((place + 1) * tall > table.scrollTop + table.clientHeight) table.scrollTop = (place + 1) * tall - table.clientHeight;
  }
  if (focus) table.focus({ preventScroll: true });
  draw();
  drawDetail();
}

function move(by) {
  if (!state.rows.length) return;
  if (state.chosen === null) { choose(state.rows[0]); return; }
  let place = state.rows.indexOf(state.chosen);
  if (place < 0) { // its new label does not match the filter: continue from its position
    const after = state.rows.findIndex((row) => row > state.chosen);
    place = (after < 0 ? state.rows.length : after) - (by > 0 ? 1 : 0);
  }
  choose(state.rows[Math.min(state.rows.length - 1, Math.max(0, place + by))]);
}

// A label is exactly what is shown: the first change also adopts everything else that was found.
function toggle(aspect) {
  if (!aspect || !canLabel()) return;
  const ids = found(state.chosen).map((a) => a.id);
  label(state.chosen, ids.includes(aspect.id) ? ids.filter((id) => id !== aspect.id) : [...ids, aspect.id]);
}

function accept(ids) {
  if (!aspects().length || !canLabel()) return;
  const row = state.chosen;
  label(row, ids ?? found(row).map((a) => a.id));
  const place = state.rows.indexOf(row); // it may no longer match the filter, nor other sentences with the same text
  const next = place < 0 ? state.rows.find((other) => other > row) : state.rows[place + 1];
  if (next !== undefined) choose(next);
  else notify("That was the last sentence in the list.");
}

// Whether a sentence is chosen and can be labelled: before detection, a label would lose the aspects not found yet.
function canLabel() {
  if (state.chosen === null) return false;
  if (!hasScores() && !labelOf(state.chosen)) { notify("Not detected yet. Wait a moment."); return false; }
  return true;
}

export async function labelNext() {
  if (loading) return;
  loading = true;
  const { filter, chosen, reviews } = state, view = document.body.dataset.view;
  try {
    const { suggestions } = await api.post("/v1/suggest", { k: 20 });
    if (filter !== state.filter || chosen !== state.chosen || view !== document.body.dataset.view || document.activeElement.id === "search") return; // the user has moved on
    if (!suggestions.length) { notify("There is nothing left to label."); return; }
    if (reviews !== state.reviews || !suggestions.some((s) => state.rowOf.has(s.id))) { await reload(); return; } // suggestions for other reviews
    state.filter = { aspect: null, kind: "all", text: "", only: new Set(suggestions.map((s) => s.id)) };
    recount();
    changed();
    table.scrollTop = 0;
    choose(state.rows[0]);
    notify("The most useful sentences first: correct them with the number keys, accept them with Enter.");
  } catch (error) {
    notify(error.message, true);
  } finally {
    loading = false;
  }
}

export function drawDetail() {
  const row = state.chosen;
  if (row === null || !(row < state.texts.length)) {
    fill(detail, el("p", { className: "hint" }, state.texts.length ? "Choose a sentence to see its scores and to correct its aspects." : "Here you will see the scores of a sentence and correct its aspects."));
    return;
  }
  if (!aspects().length) {
    fill(detail, el("p", { className: "full" }, state.texts[row]), el("p", { className: "hint" }, `Review ${state.review[row]}`), emptyState("There are no aspects yet.", "aspects", "Add aspects"));
    return;
  }
  const here = new Set(found(row).map((a) => a.id)), labelled = labelOf(row), words = spans(row);
  const list = aspects().map((aspect, column) => {
    const value = score(row, aspect), shown = scoreText(row, aspect), bar = el("span", { className: "bar" }, el("i", {}), el("b", {}));
    bar.firstChild.style.setProperty("width", `${100 * value}%`);
    bar.lastChild.style.setProperty("left", `${100 * Math.min(1, thresholdOf(aspect))}%`);
    const own = words.flatMap((s) => s.marks.filter((m) => m.aspect === aspect).map((m) => `${state.texts[row].slice(s.start, s.end)} ${m.weight.toFixed(2)}`));
    return el("button", { className: "toggle", id: `toggle-${aspect.id}`, colour: colour(column), "aria-pressed": String(here.has(aspect.id)),
      onclick: (event) => { toggle(aspect); if (event.detail) table.focus({ preventScroll: true }); }, // after a mouse click, so that Enter accepts
      "aria-label": `${aspect.name}, score ${shown}, ${here.has(aspect.id) ? "mentioned" : "not mentioned"}` },
      column < 9 ? el("kbd", {}, String(column + 1)) : el("span", {}), el("span", { className: "name", title: aspect.name }, aspect.name), bar, el("span", { className: "value" }, shown),
      own.length ? el("span", { className: "words" }, own.join(" · ")) : null);
  });
  fill(detail,
    el("p", { className: "full" }, ...marked(row)),
    el("p", { className: "hint" }, `${labelled ? "Labelled by you" : "Detected"} · review ${state.review[row]}`),
    el("div", { className: "toggles" }, ...list),
    el("div", { className: "buttons" },
      el("button", { className: "main", id: "accept", onclick: () => accept() }, "Accept ", el("kbd", {}, "Enter")),
      el("button", { id: "accept-none", onclick: () => accept([]) }, "None ", el("kbd", {}, "0")),
      labelled ? el("button", { id: "remove-label", onclick: () => { removeLabel(); table.focus(); } }, "Remove label ", el("kbd", {}, "⌫")) : null),
    el("p", { className: "hint" }, "Coloured words show where the model paid attention; they do not prove why it decided."));
}

const removeLabel = () => { if (state.chosen !== null) label(state.chosen, null); };

export function key(event) {
  const page = Math.max(1, Math.floor(table.clientHeight / height()) - 1);
  const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
  if (event.key in moves) move(moves[event.key]);
  else if (loading || event.repeat) return /^([0-9]|Enter|Backspace|Delete)$/.test(event.key); // ignored: meant for a sentence that is not shown yet
  else if (event.key >= "1" && event.key <= "9") toggle(aspects()[Number(event.key) - 1]);
  else if (event.key === "0") accept([]);
  else if (event.key === "Enter") accept();
  else if (event.key === "Backspace" || event.key === "Delete") removeLabel();
  else return false;
  return true;
}

table.addEventListener("scroll", scheduleDraw, { passive: true });
addEventListener("resize", scheduleDraw);
onChange((what) => { if (what !== "busy") { scheduleDraw(); what === "threshold" ? requestAnimationFrame(drawDetail) : drawDetail(); } });
