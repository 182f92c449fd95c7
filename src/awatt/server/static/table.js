// The sentences: only the rows in sight exist, so that 100,000 scroll like 100.

import * as api from "./api.js";
import { byId, el, fill, nothing, say } from "./dom.js";
import { marked, spans } from "./marked.js";
import { aspects, changed, colour, cut, detected, found, label, onChange, recount, reload, saidOf, saving, score, state, wantWords } from "./state.js";

const table = byId("table"), rows = byId("rows"), detail = byId("detail");
const height = () => (matchMedia("(max-width: 760px)").matches ? 88 : 60);
let drawn = false, asking = false, lines = new Map(); // the rows that exist: {node, look} by sentence

function chips(row) {
  const all = aspects(), here = found(row);
  const list = here.map((a) => el("span", { className: "chip", title: a.name, colour: colour(all.indexOf(a)) }, `${a.name} `, el("small", {}, score(row, a).toFixed(2))));
  if (!detected() && !saidOf(row)) list.push(el("span", { className: "chip none awaited", title: "Not detected yet" }, "…"));
  else if (all.length && !list.length) list.push(el("span", { className: "chip none" }, "none"));
  return list;
}

// A row is made again only if it would look different: most of them stay while one scrolls or moves a threshold.
function line(row, place) {
  const chosen = row === state.chosen, said = Boolean(saidOf(row));
  const look = [state.reviews, state.learned, state.marks[row], chosen, said, saving(row), detected(), state.words.has(state.ids[row])].join(" ");
  const kept = lines.get(row), same = kept?.look === look;
  const node = same ? kept.node : make(row, chosen, said);
  wantWords(row);
  node.setAttribute("aria-posinset", place + 1);
  node.setAttribute("aria-setsize", state.rows.length);
  node.style.setProperty("transform", `translateY(${place * height()}px)`);
  return { node, look };
}

function make(row, chosen, said) {
  return el("div", { className: `row${chosen ? " chosen" : ""}${said ? " said" : ""}${saving(row) ? " saving" : ""}`, role: "option", id: `row-${row}`,
    "aria-selected": String(chosen), onclick: () => choose(row) },
    el("div", { className: "text" }, ...marked(row)),
    el("div", { className: "chips" }, said && el("span", { className: "person", title: "Labelled by you" }, "✓", el("span", { className: "spoken" }, " labelled by you: ")), ...chips(row)));
}

export function draw() {
  drawn = false;
  const tall = height(), first = Math.max(0, Math.floor(table.scrollTop / tall) - 6);
  const last = Math.min(state.rows.length, Math.ceil((table.scrollTop + table.clientHeight) / tall) + 6);
  rows.style.setProperty("height", `${state.rows.length * tall}px`);
  const shown = new Map();
  for (let place = first; place < last; place++) shown.set(state.rows[place], line(state.rows[place], place));
  for (const [row, { node }] of lines) if (shown.get(row)?.node !== node) node.remove();
  let next = rows.firstChild;
  for (const { node } of shown.values()) {
    if (node === next) next = next.nextSibling;
    else rows.insertBefore(node, next);
  }
  lines = shown;
  const empty = byId("nothing");
  empty.hidden = state.rows.length > 0;
  if (!state.texts.length) fill(empty, nothing("No reviews are loaded yet.", "start", "Load reviews"));
  else if (!state.rows.length) fill(empty, el("p", { className: "empty" }, "No sentence fits the filter."));
  const there = state.chosen !== null && byId(`row-${state.chosen}`);
  if (there) table.setAttribute("aria-activedescendant", `row-${state.chosen}`);
  else table.removeAttribute("aria-activedescendant");
}

const later = () => { if (!drawn) { drawn = true; requestAnimationFrame(draw); } };

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
  if (place < 0) { // a label has taken it out of the list: go on from where it was
    const after = state.rows.findIndex((row) => row > state.chosen);
    place = (after < 0 ? state.rows.length : after) - (by > 0 ? 1 : 0);
  }
  choose(state.rows[Math.min(state.rows.length - 1, Math.max(0, place + by))]);
}

// A corrected sentence says exactly what is shown: the first change takes over everything else that was found.
function toggle(aspect) {
  if (!aspect || !ready()) return;
  const ids = found(state.chosen).map((a) => a.id);
  label(state.chosen, ids.includes(aspect.id) ? ids.filter((id) => id !== aspect.id) : [...ids, aspect.id]);
}

function accept(ids) {
  if (!aspects().length || !ready()) return;
  const row = state.chosen;
  label(row, ids ?? found(row).map((a) => a.id));
  const place = state.rows.indexOf(row); // it may have left the list, and others of the same words with it
  const next = place < 0 ? state.rows.find((other) => other > row) : state.rows[place + 1];
  if (next !== undefined) choose(next);
  else say("That was the last of the list.");
}

// Whether there is a sentence of which it can be said what it mentions: what has not been detected yet would be lost.
function ready() {
  if (state.chosen === null) return false;
  if (!detected() && !saidOf(state.chosen)) { say("Not detected yet. Wait a moment."); return false; }
  return true;
}

export async function labelNext() {
  if (asking) return;
  asking = true;
  const { filter, chosen, reviews } = state, view = document.body.dataset.view;
  try {
    const { suggestions } = await api.post("/v1/suggest", { k: 20 });
    if (filter !== state.filter || chosen !== state.chosen || view !== document.body.dataset.view || document.activeElement.id === "search") return; // gone on meanwhile
    if (!suggestions.length) { say("Nothing is left to label."); return; }
    if (reviews !== state.reviews || !suggestions.some((s) => state.place.has(s.id))) { await reload(); return; } // of others
    state.filter = { aspect: null, kind: "all", text: "", only: new Set(suggestions.map((s) => s.id)) };
    recount();
    changed();
    table.scrollTop = 0;
    choose(state.rows[0]);
    say("The most useful sentences first: correct with the number keys, accept with Enter.");
  } catch (error) {
    say(error.message, true);
  } finally {
    asking = false;
  }
}

export function drawDetail() {
  const row = state.chosen;
  if (row === null || !(row < state.texts.length)) {
    fill(detail, el("p", { className: "hint" }, state.texts.length ? "Choose a sentence to see why, and to correct it." : "Here you will see which words decided, and correct what is wrong."));
    return;
  }
  if (!aspects().length) {
    fill(detail, el("p", { className: "full" }, state.texts[row]), el("p", { className: "hint" }, `Review ${state.review[row]}`), nothing("There are no aspects yet.", "aspects", "Add aspects"));
    return;
  }
  const here = new Set(found(row).map((a) => a.id)), said = saidOf(row), words = spans(row);
  const list = aspects().map((aspect, column) => {
    const value = score(row, aspect), bar = el("span", { className: "bar" }, el("i", {}), el("b", {}));
    bar.firstChild.style.setProperty("width", `${100 * value}%`);
    bar.lastChild.style.setProperty("left", `${100 * Math.min(1, cut(aspect))}%`);
    const own = words.flatMap((s) => s.marks.filter((m) => m.aspect === aspect).map((m) => `${state.texts[row].slice(s.start, s.end)} ${m.weight.toFixed(2)}`));
    return el("button", { className: "verdict", id: `verdict-${aspect.id}`, colour: colour(column), "aria-pressed": String(here.has(aspect.id)),
      onclick: (event) => { toggle(aspect); if (event.detail) table.focus({ preventScroll: true }); }, // with the mouse: so that Enter accepts
      "aria-label": `${aspect.name}, score ${value.toFixed(2)}, ${here.has(aspect.id) ? "mentioned" : "not mentioned"}` },
      column < 9 ? el("kbd", {}, String(column + 1)) : el("span", {}), el("span", { className: "name", title: aspect.name }, aspect.name), bar, el("span", { className: "value" }, value.toFixed(2)),
      own.length ? el("span", { className: "words" }, own.join(" · ")) : null);
  });
  fill(detail,
    el("p", { className: "full" }, ...marked(row)),
    el("p", { className: "hint" }, `${said ? "Labelled by you" : "Detected"} · review ${state.review[row]}`),
    el("div", { className: "verdicts" }, ...list),
    el("div", { className: "buttons" },
      el("button", { className: "main", id: "accept", onclick: () => accept() }, "Accept ", el("kbd", {}, "Enter")),
      el("button", { id: "accept-none", onclick: () => accept([]) }, "None ", el("kbd", {}, "0")),
      said ? el("button", { id: "forget", onclick: () => { forget(); table.focus(); } }, "Remove label ", el("kbd", {}, "⌫")) : null),
    el("p", { className: "hint" }, "Coloured words show where the model looked; they are no proof."));
}

const forget = () => { if (state.chosen !== null) label(state.chosen, null); };

export function key(event) {
  const page = Math.max(1, Math.floor(table.clientHeight / height()) - 1);
  const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
  if (event.key in moves) move(moves[event.key]);
  else if (asking || event.repeat) return /^([0-9]|Enter|Backspace|Delete)$/.test(event.key); // of what is not seen yet
  else if (event.key >= "1" && event.key <= "9") toggle(aspects()[Number(event.key) - 1]);
  else if (event.key === "0") accept([]);
  else if (event.key === "Enter") accept();
  else if (event.key === "Backspace" || event.key === "Delete") forget();
  else return false;
  return true;
}

table.addEventListener("scroll", later, { passive: true });
addEventListener("resize", later);
onChange((what) => { if (what !== "busy") { later(); what === "threshold" ? requestAnimationFrame(drawDetail) : drawDetail(); } });
