// The state of the page, and what follows from it: the aspects of each sentence at the current thresholds.

import * as api from "./api.js";
import { byId, notify } from "./dom.js";
import { forgetScope, makeScope } from "./scope.js";

const COLOURS = ["#4e79a7", "#e0883b", "#59a14f", "#d1605e", "#8a6bb1", "#3fa7a0", "#c9a227", "#c2679a", "#7a8b3c", "#9c755f", "#5b8fd1", "#7f7f8f"];
export const NONE = "#9aa0a6";
export const colour = (column) => COLOURS[column] || `hsl(${(column * 137.5) % 360} 45% 55%)`;

// Filters combine: a sentence is listed if it matches all of them. ``where`` has the columns of its review ({column, groups}
// or {column, contains}), ``text`` a part of the sentence, ``area`` a part of the map: the charts follow these. ``aspects``
// must all be found in it; ``kind`` and ``only``, a list of ids, choose among what is counted.
export const NO_FILTER = Object.freeze({ aspects: [], kind: "all", text: "", where: [], area: null, only: null, title: "" });

export const state = {
  project: null, ids: [], review: [], texts: [], rowOf: new Map(), reviews: -1,
  scores: new Float32Array(), scoredAspects: [], autoThresholds: new Map(), learned: -1, labels: new Map(), words: new Map(),
  filter: { ...NO_FILTER }, inScope: 0, by: null, camera: null, readOnly: false, rows: [], chosen: null, busy: false,
  previews: new Map(), // thresholds set by a slider and not confirmed by the server yet: {value} by aspect id, or by "all"
  fingerprints: new Int32Array(), // of the aspects found in each sentence
  examples: new Map(), blind: new Set(), selected: new Set(), // examples by text; texts whose labels are hidden; selected ids
  changes: null, detectedReviews: -1, // what the last detection changed: {ids, before}; and for which reviews it was
};

let wanted = new Set(), requested = new Set(), timer = null; // sentences whose words are needed, and those already requested
const listeners = [];
export const onChange = (call) => listeners.push(call);
export const changed = (what = "all") => listeners.forEach((call) => { try { call(what); } catch (error) { console.error(error); } }); // an error in one must not stop the others

export const aspects = () => state.project?.aspects ?? [];
const learnedThreshold = () => [...state.autoThresholds.values()].sort((a, b) => a - b)[state.autoThresholds.size >> 1]; // the median
export const commonThreshold = () => state.previews.get("all")?.value ?? state.project.threshold ?? learnedThreshold() ?? state.project.auto_threshold;
const givenThreshold = (aspect) => state.previews.get(aspect.id)?.value ?? aspect.threshold ?? state.previews.get("all")?.value ?? state.project.threshold;
export const thresholdOf = (aspect) => Math.max(givenThreshold(aspect) ?? state.autoThresholds.get(aspect.id) ?? commonThreshold(), 1e-12);

// The score of an aspect in a sentence; 0 while it is being computed for a new aspect.
export function score(row, aspect) {
  const column = state.scoredAspects.indexOf(aspect.id);
  return column < 0 ? 0 : state.scores[row * state.scoredAspects.length + column] ?? 0;
}

// Whether every sentence has a score for every aspect, possibly not the newest; until then nothing is found.
export const hasScores = () => aspects().every((a) => state.scoredAspects.includes(a.id)) && state.scores.length === state.texts.length * state.scoredAspects.length;

// Aspects without an example: guessed from their names, or not found at all because the model cannot read the name.
export const isGuess = (aspect) => state.project.by_name.includes(aspect.id);
export const isLearned = (aspect) => !state.project.unlearned.includes(aspect.id);

export const labelOf = (row) => state.labels.get(state.texts[row]);

// Who labels, as they have called themselves in this browser; "" if they have not.
export const person = () => localStorage.getItem("awatt-person") ?? "";
export const votesOf = (row) => state.examples.get(state.texts[row])?.votes ?? {};
export const noteOf = (row) => state.project.notes[state.texts[row]] ?? "";
// In a second opinion nothing is shown of a sentence that could influence it, until this person has labelled it.
export const isBlind = (row) => state.blind.has(state.texts[row]) && !labelOf(row);

export function found(row) {
  const label = labelOf(row);
  if (isBlind(row)) return [];
  return aspects().filter((aspect) => (label ? label.has(aspect.id) : score(row, aspect) >= thresholdOf(aspect)));
}

// The aspects that were found in a sentence before the last action.
export function foundBefore(row) {
  const { scores, columns, thresholds } = state.changes.before;
  return aspects().filter((a) => columns.includes(a.id) && scores[row * columns.length + columns.indexOf(a.id)] >= thresholds.get(a.id));
}

// Rounded to two decimals, or to more if rounding would move the score across the threshold.
export function scoreText(row, aspect) {
  const value = score(row, aspect), threshold = thresholdOf(aspect);
  let digits = 2;
  while (threshold >= 0.01 && digits < 9 && (Number(value.toFixed(digits)) >= threshold) !== (value >= threshold)) digits++;
  return value.toFixed(digits);
}

export const thresholdText = (value) => value.toFixed(Number(value.toFixed(2)) === value ? 2 : 4);

// The model is uncertain about scores within 0.7 of the threshold on the logit scale.
function uncertainRange(threshold) {
  const middle = Math.log(threshold / Math.max(1 - threshold, 1e-12)), sigmoid = (logit) => 1 / (1 + Math.exp(-logit));
  return [sigmoid(middle - 0.7), sigmoid(middle + 0.7)];
}

// One pass over all sentences: counts, pairs, and the rows that match the filter.
export function recount() {
  const all = aspects(), width = state.scoredAspects.length, thresholds = all.map(thresholdOf), columns = all.map((a) => state.scoredAspects.indexOf(a.id));
  const ranges = thresholds.map(uncertainRange);
  const fingerprints = new Int32Array(state.texts.length);
  const counts = new Array(all.length).fill(0), pairs = all.map(() => new Array(all.length).fill(0));
  const { kind, only } = state.filter, scope = makeScope(state.filter);
  const filtered = state.filter.aspects.map((id) => all.findIndex((a) => a.id === id));
  const first = new Int16Array(state.texts.length).fill(-1), second = new Int16Array(state.texts.length).fill(-1);
  const rows = [], hits = [];
  let none = 0, uncertain = 0, labelled = 0, noted = 0, inScope = 0;
  const notes = new Set(Object.keys(state.project?.notes ?? {}));
  for (let row = 0; row < state.texts.length; row++) {
    hits.length = 0;
    const label = state.labels.get(state.texts[row]);
    let isUncertain = false;
    for (let i = 0; i < all.length; i++) {
      const value = columns[i] < 0 ? 0 : state.scores[row * width + columns[i]];
      if (label ? label.has(all[i].id) : value >= thresholds[i]) hits.push(i);
      if (!label && value > ranges[i][0] && value < ranges[i][1]) isUncertain = true;
    }
    for (const i of hits) fingerprints[row] += Math.imul(all[i].id, 0x9e3779b1);
    if (hits.length) [first[row], second[row]] = [hits[0], hits[1] ?? -1];
    if (!scope.matches(row) || !scope.isInArea(row)) continue;
    inScope++;
    for (const i of hits) { counts[i]++; for (const j of hits) pairs[i][j]++; }
    if (!hits.length) none++;
    if (isUncertain) uncertain++;
    if (label) labelled++;
    const hasNote = notes.size > 0 && notes.has(state.texts[row]);
    if (hasNote) noted++;
    if (only ? !only.has(state.ids[row]) : false) continue;
    if (!filtered.every((i) => hits.includes(i))) continue;
    if (kind === "none" && hits.length) continue;
    if (kind === "uncertain" && !isUncertain) continue;
    if (kind === "labelled" && !label) continue;
    if (kind === "noted" && !hasNote) continue;
    rows.push(row);
  }
  if (only) { const order = new Map([...only].map((id, place) => [id, place])); rows.sort((a, b) => order.get(state.ids[a]) - order.get(state.ids[b])); }
  Object.assign(state, { rows, counts, pairs, none, uncertain, labelled, noted, fingerprints, first, second, inScope });
}

export function setFilter(change) {
  state.filter = { ...state.filter, ...change };
  if (!state.filter.only) state.filter.title = "";
  recount();
  if (!state.rows.includes(state.chosen)) state.chosen = state.rows[0] ?? null; // keys act on a sentence in the list
  if (state.selected.size) state.selected = new Set(state.rows.map((row) => state.ids[row]).filter((id) => state.selected.has(id))); // and buttons on those listed
  byId("table").scrollTop = 0;
  changed();
}

function showProject(project) {
  if (state.project && project.project !== state.project.project) { // another project is served here now
    waiting = 0;
    location.reload();
    return;
  }
  api.setProject(project.project);
  if (!(project.revision < state.project?.revision)) state.project = project; // otherwise a newer response came first
  state.changes = null;
  const known = new Set(aspects().map((a) => a.id));
  if (!state.filter.aspects.every((id) => known.has(id))) state.filter = { ...state.filter, aspects: state.filter.aspects.filter((id) => known.has(id)) };
  applyLabels();
}

export function applyLabels() {
  state.examples = new Map(state.project.examples.map((e) => [e.text, e]));
  state.labels = new Map(state.project.examples.map((e) => [e.text, new Set(e.aspects)]));
  for (const text of state.blind) if (!(person() in (state.examples.get(text)?.votes ?? {}))) state.labels.delete(text);
  for (const [text, label] of pending) label ? state.labels.set(text, label) : state.labels.delete(text);
  recount();
  changed();
}

async function catchUp() {
  if (state.project.reviews !== state.reviews) await loadSentences();
  if (state.project.learned !== state.learned) await loadScores();
}

async function loadSentences() {
  const found = await api.get("/v1/project/sentences");
  Object.assign(state, { ids: found.ids, review: found.review, texts: found.texts, reviews: found.reviews, learned: -1, chosen: null, blind: new Set(), selected: new Set() });
  state.rowOf = new Map(found.ids.map((id, row) => [id, row]));
  Object.assign(state, { filter: { ...NO_FILTER }, by: null, camera: null });
  forgetScope();
  state.scores = new Float32Array();
  state.scoredAspects = [];
  state.words.clear();
  [wanted, requested] = [new Set(), new Set()];
  recount(); // before anything is drawn: the rows still belong to the old sentences
}

async function loadScores() {
  if (state.busy) return; // the running call continues until the scores are up to date
  state.busy = true;
  changed("busy");
  const thresholds = new Map(aspects().map((a) => [a.id, thresholdOf(a)]));
  const before = { scores: state.scores, columns: state.scoredAspects, thresholds };
  let reviews;
  try {
    for (let attempt = 0; attempt < 20; attempt++) {
      const { values, headers } = await api.floats("/v1/project/scores");
      reviews = Number(headers.get("x-awatt-reviews"));
      if (reviews === state.reviews) { // otherwise they belong to other sentences than those shown
        state.scores = values;
        state.learned = Number(headers.get("x-awatt-learned"));
        state.scoredAspects = (headers.get("x-awatt-aspects") || "").split(",").filter(Boolean).map(Number);
        const own = (headers.get("x-awatt-thresholds") || "").split(",").map(Number);
        state.autoThresholds = new Map(state.scoredAspects.map((id, column) => [id, own[column]])); // the detector's own
        state.words.clear();
      }
      if (reviews > state.reviews || state.learned >= state.project.learned) break;
      await new Promise((resolve) => setTimeout(resolve, 20 * attempt));
    } // after that, the next refresh requests them again
  } finally {
    state.busy = false;
    changed("busy");
  }
  if (reviews > state.reviews) { await reload(); return; } // other reviews were loaded meanwhile
  const earlier = state.fingerprints, again = state.detectedReviews === state.reviews;
  recount();
  if (again) state.changes = { before, ids: new Set(state.ids.filter((_, row) => state.fingerprints[row] !== earlier[row])) };
  state.detectedReviews = state.reviews;
  changed();
}

// Waits for a response with the project, then loads the sentences and scores if they have changed. Returns whether the
// request succeeded; sentences and scores that fail to load are requested again later.
async function finish(response) {
  try {
    await response;
  } catch (error) {
    notify(error.message, true);
    if (error.status === 404 || error.status === 409) await reload(); // another user was faster: show what they changed
    return false;
  }
  try {
    await catchUp();
  } catch (error) {
    notify(error.message, true);
  }
  return true;
}

export const reload = () => finish(api.get("/v1/project").then(showProject));

// Changes are sent one after the other, each when the page knows the outcome of the previous one: so quick keys build on
// each other, and undo reverses the user's last action, not the last one that had arrived.
let last = Promise.resolve(), waiting = 0;
export function enqueue(request) {
  waiting++;
  const response = last.then(request).finally(() => { waiting--; });
  last = response.catch(() => {}); // the caller reports the error
  return response;
}
export const isSaving = () => waiting > 0;
addEventListener("beforeunload", (event) => { if (waiting) event.preventDefault(); });

// Changes the project on the server, and shows its new state.
const refuse = () => { notify("This link is read-only: nothing can be changed."); return false; };
export const act = async (request) => state.readOnly ? refuse() : finish(enqueue(() => request().then(showProject)));

// Labels, and their removal (null), are shown immediately; until the server has saved one, it is pending.
const pending = new Map();
export const saving = (row) => pending.has(state.texts[row]);

// Returns whether the server has saved it.
export async function label(row, ids) {
  if (state.readOnly) return refuse();
  const text = state.texts[row], id = state.ids[row], mine = ids && new Set(ids), shown = labelOf(row);
  if (mine ? shown?.size === mine.size && ids.every((each) => shown.has(each)) && person() in votesOf(row) : !shown) return false;
  // The label that the user saw, or the one that results from their own changes still being sent.
  const saved = () => state.project.examples.find((e) => e.text === text)?.aspects ?? null, idle = !waiting, seen = saved();
  pending.set(text, mine);
  applyLabels();
  const finished = () => { if (pending.get(text) === mine) pending.delete(text); };
  const refused = (error) => { applyLabels(); throw error; }; // no longer shown
  return act(() => api.put(`/v1/project/sentences/${id}`, { aspects: ids, seen: idle ? seen : saved(), person: person() }).finally(finished).catch(refused));
}

// Labels of many sentences, undone together; shown once they are saved. Refused if others have changed any of them meanwhile.
export const labelMany = (rows, idsOf) => act(() => api.post("/v1/project/labels", { labels: rows.map((row) => ({ id: state.ids[row], aspects: idsOf(row), seen: state.examples.get(state.texts[row])?.aspects ?? null })), person: person() }));

// The words of sentences are requested together, a moment after they are first needed.
export function requestWords(row) {
  const id = state.ids[row];
  if (state.words.has(id) || wanted.has(id) || requested.has(id)) return;
  wanted.add(id);
  timer ??= setTimeout(fetchWords, 30);
}

async function fetchWords() {
  const ids = [...wanted].slice(-200), { learned } = state, mine = requested;
  timer = null;
  wanted.clear();
  if (!ids.length) return;
  const again = () => { for (const id of ids) mine.delete(id); changed("words"); }; // drawing requests what is still visible and missing
  for (const id of ids) mine.add(id);
  try {
    const { words } = await api.post("/v1/project/words", { ids });
    if (learned === state.learned && mine === requested) for (const id of ids) state.words.set(id, words[id] ?? {});
    again();
  } catch (error) {
    notify(error.message, true);
    setTimeout(again, 4000);
  }
}
