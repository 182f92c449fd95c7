// The table of sentences. Only the visible rows exist, so that 100,000 scroll like 100.

import { byId, el, emptyState, fill, notify } from "./dom.js";
import { drawDetail, findAspect } from "./detail.js";
import { marked } from "./marked.js";
import { back, endOfList, finish, inQueue, isLoading, skip } from "./queue.js";
import { acceptAll, acceptNone, removeLabels, several, toggleAll } from "./selection.js";
import { aspects, changed, colour, found, foundBefore, hasScores, isBlind, isGuess, isLearned, label, labelOf, noteOf, onChange, person, requestWords, saving, scoreText, state, votesOf } from "./state.js";

const table = byId("table"), rows = byId("rows"), MOST_SELECTED = 2000; // labelled at once
const height = () => (matchMedia("(max-width: 760px)").matches ? 88 : 60);
let drawScheduled = false, drawnRows = new Map(); // the rows that exist: {node, key} by sentence

function chips(row) {
  if (isBlind(row)) return [];
  const all = aspects(), here = found(row);
  const guessed = (a) => isGuess(a) && !labelOf(row);
  const list = here.map((a) => el("span", { className: `chip${guessed(a) ? " guess" : ""}`, title: guessed(a) ? `${a.name}: a guess from the name alone` : a.name, colour: colour(all.indexOf(a)) },
    `${a.name}${guessed(a) ? "?" : ""} `, el("small", {}, scoreText(row, a))));
  if (!hasScores() && !labelOf(row)) list.push(el("span", { className: "chip none pending", title: "Not detected yet" }, "…"));
  else if (!list.length && !labelOf(row) && !all.some(isLearned)) return list; // nothing was learned, so nothing can be said
  else if (all.length && !list.length) list.push(el("span", { className: "chip none" }, "none"));
  return list;
}

// In front of the aspects of a sentence that the last action changed: those that were found before.
function earlier(row) {
  if (!wasChanged(row)) return null;
  return el("small", { className: "earlier" }, `was ${foundBefore(row).map((a) => a.name).join(", ") || "none"} →`);
}
const wasChanged = (row) => Boolean(state.changes?.ids.has(state.ids[row])) && !labelOf(row);

// A row is rebuilt only if its key, and so its look, has changed: most rows stay while the user scrolls or moves a threshold.
function drawRow(row, place) {
  const chosen = row === state.chosen, labelled = Boolean(labelOf(row));
  const key = [state.reviews, state.selected.has(state.ids[row]), noteOf(row), isBlind(row), Object.keys(votesOf(row)).join("\n"), state.learned, state.fingerprints[row], chosen, labelled, saving(row), hasScores(), state.words.has(state.ids[row]), wasChanged(row)].join(" ");
  const kept = drawnRows.get(row), same = kept?.key === key;
  const node = same ? kept.node : makeRow(row, chosen, labelled);
  requestWords(row);
  node.setAttribute("aria-posinset", place + 1);
  node.setAttribute("aria-setsize", state.rows.length);
  node.style.setProperty("transform", `translateY(${place * height()}px)`);
  return { node, key };
}

// Who labelled a sentence, in words.
export function labelledBy(row) {
  const names = Object.keys(votesOf(row)), you = person();
  if (!names.length || (names.length === 1 && names[0] === you)) return "you";
  return names.map((name) => (name === you ? "you" : name || "someone without a name")).join(" and ");
}

function makeRow(row, chosen, labelled) {
  const picked = state.selected.has(state.ids[row]), note = noteOf(row), by = labelled && `Labelled by ${labelledBy(row)}`;
  return el("div", { className: `row${chosen ? " chosen" : ""}${labelled ? " labelled" : ""}${saving(row) ? " saving" : ""}${picked ? " picked" : ""}`, role: "option", id: `row-${row}`,
    "aria-selected": String(chosen || picked), onclick: (event) => click(row, event) },
    el("span", { className: "tick", "aria-hidden": "true", title: "Select" }),
    el("div", { className: "text" }, ...marked(row)),
    el("div", { className: "chips" }, note && el("span", { className: "noted", title: note }, "✎", el("span", { className: "spoken" }, ` note: ${note} `)),
      labelled && el("span", { className: "person", title: by }, "✓", el("span", { className: "spoken" }, ` ${by}: `)), earlier(row), ...chips(row)));
}

// With Ctrl or on its box a sentence is selected besides others, with Shift all up to it.
function click(row, event) {
  const id = state.ids[row];
  if (event.shiftKey && state.chosen !== null) selectTo(row);
  else if (event.ctrlKey || event.metaKey || event.target.className === "tick") {
    if (!state.selected.size && !event.target.matches(".tick") && state.chosen !== null) state.selected.add(state.ids[state.chosen]);
    state.selected.has(id) ? state.selected.delete(id) : state.selected.add(id);
  } else state.selected.clear();
  choose(row);
  changed("selection");
}

function selectTo(row) {
  const [one, two] = [state.rows.indexOf(state.chosen), state.rows.indexOf(row)].sort((a, b) => a - b);
  select(state.rows.slice(Math.max(0, one), two + 1));
}

function select(list) {
  for (const row of list.slice(0, MOST_SELECTED)) state.selected.add(state.ids[row]);
  if (list.length > MOST_SELECTED) notify(`Only the first ${MOST_SELECTED.toLocaleString("en")} are selected: more cannot be labelled at once.`);
}

export function selectAll() {
  state.selected.clear();
  select(state.rows);
  changed("selection");
}

export function clearSelection() {
  state.selected.clear();
  changed("selection");
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
  else if (!state.rows.length) fill(empty, el("p", { className: "empty" }, endOfList() ?? "No sentence matches the filter."));
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
  changed("view");
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

function extend(by) {
  if (state.chosen === null) return;
  state.selected.add(state.ids[state.chosen]);
  move(by);
  state.selected.add(state.ids[state.chosen]);
  changed("selection");
}

function toggleSelected() {
  const id = state.ids[state.chosen];
  if (state.chosen === null) return;
  state.selected.has(id) ? state.selected.delete(id) : state.selected.add(id);
  changed("selection");
}

// A label is exactly what is shown: the first change also adopts everything else that was found.
export function toggle(aspect) {
  if (aspect && several()) { toggleAll(aspect); return; }
  if (!aspect || !canLabel()) return;
  const ids = found(state.chosen).map((a) => a.id);
  label(state.chosen, ids.includes(aspect.id) ? ids.filter((id) => id !== aspect.id) : [...ids, aspect.id]);
}

export function accept(ids) {
  if (!aspects().length) return;
  if (several()) { ids ? acceptNone() : acceptAll(); return; }
  if (!canLabel()) return;
  const row = state.chosen;
  label(row, ids ?? found(row).map((a) => a.id));
  if (inQueue()) { finish(row); return; }
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

export async function removeLabel() {
  if (several()) { removeLabels(); return; }
  const row = state.chosen;
  if (row !== null && await label(row, null) && labelOf(row) && !saving(row)) notify(`Your label is removed. The sentence is still labelled by ${labelledBy(row)}.`);
}

export function key(event) {
  const page = Math.max(1, Math.floor(table.clientHeight / height()) - 1);
  const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
  if (event.shiftKey && event.key in moves) extend(moves[event.key]);
  else if (event.key in moves) move(moves[event.key]);
  else if (event.key === " ") toggleSelected();
  else if (event.key === "Escape" && state.selected.size) clearSelection();
  else if (event.key.toLowerCase() === "a") findAspect();
  else if (inQueue() && event.key.toLowerCase() === "s") skip();
  else if (inQueue() && event.key.toLowerCase() === "b") back();
  else if (isLoading() || event.repeat) return /^([0-9]|Enter|Backspace|Delete)$/.test(event.key); // ignored: meant for a sentence that is not shown yet
  else if (event.key >= "1" && event.key <= "9") toggle(aspects()[Number(event.key) - 1]);
  else if (event.key === "0") accept([]);
  else if (event.key === "Enter") accept();
  else if (event.key === "Backspace" || event.key === "Delete") removeLabel();
  else return false;
  return true;
}

table.addEventListener("scroll", scheduleDraw, { passive: true });
addEventListener("resize", scheduleDraw);
onChange((what) => { if (what !== "busy" && what !== "view") { scheduleDraw(); what === "threshold" ? requestAnimationFrame(drawDetail) : drawDetail(); } });
