// The state of the page, and what follows from it: the aspects of each sentence at the current thresholds.

import * as api from "./api.js";
import { notify } from "./dom.js";

const COLOURS = ["#4e79a7", "#e0883b", "#59a14f", "#d1605e", "#8a6bb1", "#3fa7a0", "#c9a227", "#c2679a", "#7a8b3c", "#9c755f", "#5b8fd1", "#7f7f8f"];
export const NONE = "#9aa0a6";
export const colour = (column) => COLOURS[column] || `hsl(${(column * 137.5) % 360} 45% 55%)`;

export const state = {
  project: null, ids: [], review: [], texts: [], rowOf: new Map(), reviews: -1,
  scores: new Float32Array(), scoredAspects: [], autoThresholds: new Map(), learned: -1, labels: new Map(), words: new Map(),
  filter: { aspect: null, kind: "all", text: "", only: null }, rows: [], chosen: null, busy: false,
  previews: new Map(), // thresholds set by a slider and not confirmed by the server yet: {value} by aspect id, or by "all"
  fingerprints: new Int32Array(), // of the aspects found in each sentence
  changedCount: null, detectedReviews: -1, // how many sentences the last detection changed, and for which reviews it was
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

export const labelOf = (row) => state.labels.get(state.texts[row]);

export function found(row) {
  const label = labelOf(row);
  return aspects().filter((aspect) => (label ? label.has(aspect.id) : score(row, aspect) >= thresholdOf(aspect)));
}

// Rounded to two decimals, or to more if rounding would move the score across the threshold.
export function scoreText(row, aspect) {
  const value = score(row, aspect), threshold = thresholdOf(aspect);
  let digits = 2;
  while (threshold >= 0.01 && digits < 6 && (Number(value.toFixed(digits)) >= threshold) !== (value >= threshold)) digits++;
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
  const { aspect, kind, only } = state.filter, text = state.filter.text.trim().toLowerCase();
  const filtered = all.findIndex((a) => a.id === aspect);
  const rows = [], hits = [];
  let none = 0, uncertain = 0, labelled = 0;
  for (let row = 0; row < state.texts.length; row++) {
    hits.length = 0;
    const label = state.labels.get(state.texts[row]);
    let isUncertain = false;
    for (let i = 0; i < all.length; i++) {
      const value = columns[i] < 0 ? 0 : state.scores[row * width + columns[i]];
      if (label ? label.has(all[i].id) : value >= thresholds[i]) hits.push(i);
      if (!label && value > ranges[i][0] && value < ranges[i][1]) isUncertain = true;
    }
    for (const i of hits) { counts[i]++; fingerprints[row] += Math.imul(all[i].id, 0x9e3779b1); for (const j of hits) pairs[i][j]++; }
    if (!hits.length) none++;
    if (isUncertain) uncertain++;
    if (label) labelled++;
    if (only ? !only.has(state.ids[row]) : false) continue;
    if (filtered >= 0 && !hits.includes(filtered)) continue;
    if (kind === "none" && hits.length) continue;
    if (kind === "uncertain" && !isUncertain) continue;
    if (kind === "labelled" && !label) continue;
    if (text && !state.texts[row].toLowerCase().includes(text)) continue;
    rows.push(row);
  }
  if (only) { const order = [...only]; rows.sort((a, b) => order.indexOf(state.ids[a]) - order.indexOf(state.ids[b])); }
  Object.assign(state, { rows, counts, pairs, none, uncertain, labelled, fingerprints });
}

function showProject(project) {
  if (state.project && project.project !== state.project.project) { // another project is served here now
    waiting = 0;
    location.reload();
    return;
  }
  api.setProject(project.project);
  if (!(project.revision < state.project?.revision)) state.project = project; // otherwise a newer response came first
  state.changedCount = null;
  if (!aspects().some((a) => a.id === state.filter.aspect)) state.filter.aspect = null;
  applyLabels();
}

function applyLabels() {
  state.labels = new Map(state.project.examples.map((e) => [e.text, new Set(e.aspects)]));
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
  Object.assign(state, { ids: found.ids, review: found.review, texts: found.texts, reviews: found.reviews, learned: -1, chosen: null });
  state.rowOf = new Map(found.ids.map((id, row) => [id, row]));
  state.filter = { aspect: null, kind: "all", text: "", only: null };
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
  let reviews;
  try {
    for (let attempt = 0; attempt < 20; attempt++) {
      const { values, headers } = await api.floats("/v1/project/scores");
      reviews = Number(headers.get("x-awatt-reviews"));
      if (reviews === state.reviews) { // otherwise they belong to other sentences than those shown
        state.scores = values;
        state.learned = Number(headers.get("x-awatt-learned"));
        state.scoredAspects = (headers.get("x-awatt-aspects") || "").split(",").filter(Boolean).map(Number);
        const thresholds = (headers.get("x-awatt-thresholds") || "").split(",").map(Number);
        state.autoThresholds = new Map(state.scoredAspects.map((id, column) => [id, thresholds[column]])); // the detector's own
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
  const before = state.fingerprints, again = state.detectedReviews === state.reviews;
  recount();
  if (again) state.changedCount = state.fingerprints.reduce((sum, fingerprint, row) => sum + (fingerprint !== before[row]), 0);
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
addEventListener("beforeunload", (event) => { if (waiting) event.preventDefault(); });

// Changes the project on the server, and shows its new state.
export const act = (request) => finish(enqueue(() => request().then(showProject)));

// Labels, and their removal (null), are shown immediately; until the server has saved one, it is pending.
const pending = new Map();
export const saving = (row) => pending.has(state.texts[row]);

export function label(row, ids) {
  const text = state.texts[row], id = state.ids[row], mine = ids && new Set(ids), shown = labelOf(row);
  if (mine ? shown?.size === mine.size && ids.every((each) => shown.has(each)) : !shown) return;
  // The label that the user saw, or the one that results from their own changes still being sent.
  const saved = () => state.project.examples.find((e) => e.text === text)?.aspects ?? null, idle = !waiting, seen = saved();
  pending.set(text, mine);
  applyLabels();
  const finished = () => { if (pending.get(text) === mine) pending.delete(text); };
  const refused = (error) => { applyLabels(); throw error; }; // no longer shown
  act(() => api.put(`/v1/project/sentences/${id}`, { aspects: ids, seen: idle ? seen : saved() }).finally(finished).catch(refused));
}

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
