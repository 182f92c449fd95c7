// The chosen sentence: its scores, its label, a note, and the review around it. What is clicked often stays in its place.

import * as api from "./api.js";
import { byId, el, emptyState, fill, filling, notify } from "./dom.js";
import { drawSelection, several } from "./selection.js";
import { marked, spans } from "./marked.js";
import { review } from "./review.js";
import { act, aspects, colour, found, isBlind, isGuess, isLearned, labelOf, noteOf, onChange, person, score, scoreText, state, thresholdOf, votesOf } from "./state.js";
import { accept, labelledBy, removeLabel, toggle } from "./table.js";

export const KEYS = 9; // aspects with a number key; beyond that, names are typed
const detail = byId("detail");
const find = el("input", { id: "find-aspect", type: "search", placeholder: "Type an aspect ( A )", "aria-label": "Find an aspect to add or remove; Enter chooses the first", oninput: () => drawDetail(), onkeydown: (event) => {
  if (event.key === "Enter") { const [first] = matching(); leaveFind(); if (first) toggle(first); event.preventDefault(); }
  if (event.key === "Escape") leaveFind(); } });

function leaveFind() {
  find.value = "";
  drawDetail();
  byId("table").focus({ preventScroll: true });
}

// The aspects whose names begin with what is typed, then those that contain it.
function matching() {
  const typed = find.value.trim().toLowerCase(), names = (test) => aspects().filter((a) => test(a.name.toLowerCase()));
  return [...names((name) => name.startsWith(typed)), ...names((name) => !name.startsWith(typed) && name.includes(typed))];
}

export function findAspect() {
  if (state.chosen === null || !aspects().length) return;
  find.hidden = false;
  find.focus();
}

// Where the aspects of a sentence come from.
function origin(row) {
  if (labelOf(row)) return `Labelled by ${labelledBy(row)}`;
  if (isBlind(row)) return "Second opinion: what others said is hidden";
  const learned = aspects().filter(isLearned);
  if (!learned.length) return "Nothing is learned yet: choose the aspects it mentions";
  return learned.every(isGuess) ? "Guessed from the names" : "Detected";
}

// What each person said, where they differ.
function opinions(row) {
  const votes = Object.entries(votesOf(row)), name = (ids) => aspects().filter((a) => ids.includes(a.id)).map((a) => a.name).join(", ") || "none";
  if (isBlind(row) || new Set(votes.map(([, ids]) => [...ids].sort().join())).size < 2) return null;
  return el("p", { className: "opinions" }, ...votes.flatMap(([who, ids], i) => [i ? "; " : "", el("b", {}, who === person() ? "you" : who || "no name"), `: ${name(ids)}`]));
}

function toggleButton(row, aspect, column, pressed, own) {
  const learned = isLearned(aspect) && !isBlind(row), value = score(row, aspect), shown = scoreText(row, aspect), bar = el("span", { className: "bar" }, el("i", {}), el("b", {}));
  bar.firstChild.style.setProperty("width", `${100 * value}%`);
  bar.lastChild.style.setProperty("left", `${100 * Math.min(1, thresholdOf(aspect))}%`);
  return el("button", { className: "toggle", id: `toggle-${aspect.id}`, colour: colour(column), "aria-pressed": String(pressed),
    onclick: (event) => { toggle(aspect); if (event.detail) byId("table").focus({ preventScroll: true }); }, // after a mouse click, so that Enter accepts
    "aria-label": `${aspect.name}, ${learned ? `score ${shown}` : isBlind(row) ? "score hidden" : "not learned yet"}, ${pressed ? "mentioned" : "not mentioned"}` },
    column < KEYS ? el("kbd", {}, String(column + 1)) : el("span", {}), el("span", { className: "name", title: aspect.name }, isGuess(aspect) ? `${aspect.name}?` : aspect.name), ...learned ? [bar, el("span", { className: "value" }, shown)] : [el("span", { className: "hint unlearned" }, isBlind(row) ? "" : "not learned")],
    el("span", { className: "words", title: own }, own || "\u00a0"));
}

const unsaved = new Map(); // notes that could not be saved, by text: sent again with the next Enter or blur
function noteField(row) {
  const text = state.texts[row], id = state.ids[row];
  const field = el("input", { id: "note", maxLength: 2000, defaultValue: noteOf(row), placeholder: "Note on this sentence", "aria-label": "Note on this sentence" });
  if (unsaved.has(text)) field.value = unsaved.get(text);
  const save = async () => {
    const note = field.value;
    if (filling) return; // a field that is drawn again keeps what is typed
    unsaved.delete(text);
    if (note.trim() === field.defaultValue) return;
    field.defaultValue = note; // so that it does not count as being typed
    if (await act(() => api.put(`/v1/project/notes/${id}`, { note }))) return;
    unsaved.set(text, note);
    drawDetail();
  };
  field.addEventListener("blur", save);
  field.addEventListener("keydown", (event) => { if (event.key === "Enter") byId("table").focus({ preventScroll: true }); });
  return field;
}

// Adds the sentence to the examples of an aspect, whatever else it mentions; also of a new aspect.
const NEW = "new";
function exampleMenu(row) {
  const select = el("select", { id: "use-as", "aria-label": "Use as an example of", onchange: () => use(select.value) },
    el("option", { value: "" }, "Use as example of …"), ...aspects().map((a) => el("option", { value: String(a.id) }, a.name)), el("option", { value: NEW }, "a new aspect …"));
  const text = state.texts[row], done = (name) => notify(`An example of ${name} now. Undo takes it back.`);
  async function use(value) {
    select.value = "";
    const aspect = aspects().find((a) => String(a.id) === value);
    if (value === NEW) { name.hidden = false; name.focus(); }
    else if (aspect && await act(() => api.post(`/v1/aspects/${aspect.id}/examples`, { texts: [text] }))) done(aspect.name);
  }
  const name = el("input", { id: "use-as-name", hidden: byId("use-as-name")?.hidden ?? true, maxLength: 100, placeholder: "Its name, then Enter", "aria-label": "Name of the new aspect", onkeydown: async (event) => {
    if (event.key !== "Enter" || !name.value.trim()) return;
    const wanted = name.value.trim();
    name.value = "";
    name.hidden = true;
    byId("table").focus({ preventScroll: true });
    if (await act(() => api.post("/v1/aspects", { name: wanted, examples: [text] }))) done(wanted);
  } });
  return [select, name];
}

const SELECTED = -1;
let drawn = null; // the sentence that is shown, or that several are
export function drawDetail() {
  const row = several() ? SELECTED : state.chosen;
  if (drawn !== row) { byId("note")?.blur(); find.value = ""; } // what was typed belongs to the sentence before
  const many = aspects().length > KEYS, listed = find.value.trim() ? matching() : aspects(), typing = document.activeElement === find;
  find.hidden = !many && !typing && !find.value;
  if (row === SELECTED) {
    drawn = row;
    drawSelection(detail, find, listed);
    if (typing) find.focus({ preventScroll: true });
    return;
  }
  if (row === null || !(row < state.texts.length)) {
    fill(detail, el("p", { className: "hint" }, state.texts.length ? "Choose a sentence to see its scores and to correct its aspects." : "Here you will see the scores of a sentence and correct its aspects."));
    return;
  }
  if (!aspects().length) {
    fill(detail, el("p", { className: "full" }, state.texts[row]), emptyState("There are no aspects yet.", "aspects", "Add aspects"), ...review(row));
    return;
  }
  const here = new Set(found(row).map((a) => a.id)), words = spans(row);
  const own = (aspect) => words.flatMap((s) => s.marks.filter((m) => m.aspect === aspect).map((m) => `${state.texts[row].slice(s.start, s.end)} ${m.weight.toFixed(2)}`)).join(" · ");
  if (drawn !== row) for (const id of ["note", "use-as-name"]) byId(id)?.remove(); // otherwise what is typed would move to the next sentence
  drawn = row;
  fill(detail,
    el("p", { className: "full", tabIndex: 0 }, ...marked(row)),
    el("p", { className: "hint origin" }, `${origin(row)} · review ${state.review[row]}`),
    el("div", { className: "buttons" },
      el("button", { className: "main", id: "accept", onclick: () => accept() }, "Accept ", el("kbd", {}, "Enter")),
      el("button", { id: "accept-none", onclick: () => accept([]) }, "None ", el("kbd", {}, "0")),
      el("button", { id: "remove-label", disabled: !labelOf(row), title: "Remove the label", "aria-label": "Remove the label", onclick: () => { removeLabel(); byId("table").focus(); } }, "⌫")),
    find,
    el("div", { className: "toggles" }, ...listed.map((aspect) => toggleButton(row, aspect, aspects().indexOf(aspect), here.has(aspect.id), own(aspect)))),
    opinions(row),
    el("div", { className: "aside" }, noteField(row), ...exampleMenu(row)),
    ...review(row),
    el("p", { className: "hint" }, "Coloured words show where the model paid attention; they do not prove why it decided."));
  if (typing) find.focus({ preventScroll: true });
}

onChange((what) => { if (what === "review") drawDetail(); });
