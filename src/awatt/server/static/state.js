// What the page knows, and what follows from it: which aspects a sentence has at the thresholds of this moment.

import * as api from "./api.js";
import { say } from "./dom.js";

const COLOURS = ["#4e79a7", "#e0883b", "#59a14f", "#d1605e", "#8a6bb1", "#3fa7a0", "#c9a227", "#c2679a", "#7a8b3c", "#9c755f", "#5b8fd1", "#7f7f8f"];
export const NONE = "#9aa0a6";
export const colour = (column) => COLOURS[column] || `hsl(${(column * 137.5) % 360} 45% 55%)`;

export const state = {
  project: null, ids: [], review: [], texts: [], place: new Map(), reviews: -1,
  scores: new Float32Array(), scored: [], learned: -1, judged: new Map(), words: new Map(),
  filter: { aspect: null, kind: "all", text: "", only: null }, rows: [], chosen: null, busy: false,
  previews: new Map(), // thresholds that a person has chosen and the server has not answered for: {value} by aspect, or by "all"
  marks: new Int32Array(), moved: null, detected: -1, // what was found in each sentence, how many the last detection changed, and in which reviews
};

let wanted = new Set(), asked = new Set(), timer = null; // sentences whose words are wanted, and for which the server was asked
const listeners = [];
export const onChange = (call) => listeners.push(call);
export const changed = (what = "all") => listeners.forEach((call) => { try { call(what); } catch (error) { console.error(error); } }); // the others, and who called, go on

export const aspects = () => state.project?.aspects ?? [];
export const common = () => state.previews.get("all")?.value ?? state.project.threshold ?? state.project.auto_threshold;
export const cut = (aspect) => Math.max(state.previews.get(aspect.id)?.value ?? aspect.threshold ?? common(), 1e-12);

// Columns of the scores by aspect; scores lag behind the aspects while they are computed.
export function score(row, aspect) {
  const column = state.scored.indexOf(aspect.id);
  return column < 0 ? 0 : state.scores[row * state.scored.length + column] ?? 0;
}

// Whether there are scores of every sentence and aspect, be it of a moment ago: without them nothing is found yet.
export const detected = () => aspects().every((a) => state.scored.includes(a.id)) && state.scores.length === state.texts.length * state.scored.length;

export const saidOf = (row) => state.judged.get(state.texts[row]);

export function found(row) {
  const said = saidOf(row);
  return aspects().filter((aspect) => (said ? said.has(aspect.id) : score(row, aspect) >= cut(aspect)));
}

// Scores that are within 0.7 of the threshold on the logistic scale: between these two the model is uncertain.
function near(threshold) {
  const middle = Math.log(threshold / Math.max(1 - threshold, 1e-12)), at = (place) => 1 / (1 + Math.exp(-place));
  return [at(middle - 0.7), at(middle + 0.7)];
}

// One pass over all sentences: counts, pairs, and which rows the filter lets through.
export function recount() {
  const all = aspects(), width = state.scored.length, cuts = all.map(cut), columns = all.map((a) => state.scored.indexOf(a.id));
  const place = new Map(all.map((a, i) => [a.id, i])), [low, high] = [cuts.map((c) => near(c)[0]), cuts.map((c) => near(c)[1])];
  const marks = new Int32Array(state.texts.length);
  const counts = new Array(all.length).fill(0), pairs = all.map(() => new Array(all.length).fill(0));
  const { aspect, kind, only } = state.filter, text = state.filter.text.trim().toLowerCase();
  const wanted = aspect === null ? -1 : place.get(aspect) ?? -1;
  const rows = [], hits = [];
  let none = 0, unsure = 0, said = 0;
  for (let row = 0; row < state.texts.length; row++) {
    hits.length = 0;
    const judged = state.judged.get(state.texts[row]);
    let unclear = false;
    for (let i = 0; i < all.length; i++) {
      const value = columns[i] < 0 ? 0 : state.scores[row * width + columns[i]];
      if (judged ? judged.has(all[i].id) : value >= cuts[i]) hits.push(i);
      if (!judged && value > low[i] && value < high[i]) unclear = true;
    }
    for (const i of hits) { counts[i]++; marks[row] += Math.imul(all[i].id, 0x9e3779b1); for (const j of hits) pairs[i][j]++; }
    if (!hits.length) none++;
    if (unclear) unsure++;
    if (judged) said++;
    if (only ? !only.has(state.ids[row]) : false) continue;
    if (wanted >= 0 && !hits.includes(wanted)) continue;
    if (kind === "none" && hits.length) continue;
    if (kind === "uncertain" && !unclear) continue;
    if (kind === "said" && !judged) continue;
    if (text && !state.texts[row].toLowerCase().includes(text)) continue;
    rows.push(row);
  }
  if (only) { const order = [...only]; rows.sort((a, b) => order.indexOf(state.ids[a]) - order.indexOf(state.ids[b])); }
  Object.assign(state, { rows, counts, pairs, none, unsure, said, marks });
}

function take(project) {
  if (state.project && project.project !== state.project.project) { // another one is served here now: nothing fits
    waiting = 0;
    location.reload();
    return;
  }
  api.setProject(project.project);
  if (!(project.revision < state.project?.revision)) state.project = project; // else it was overtaken
  state.moved = null;
  const names = new Set(aspects().map((a) => a.id));
  if (!names.has(state.filter.aspect)) state.filter.aspect = null;
  judgedAnew();
}

function judgedAnew() {
  state.judged = new Map(state.project.examples.map((e) => [e.text, new Set(e.aspects)]));
  for (const [text, said] of pending) said ? state.judged.set(text, said) : state.judged.delete(text);
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
  state.place = new Map(found.ids.map((id, row) => [id, row]));
  state.filter = { aspect: null, kind: "all", text: "", only: null };
  state.scores = new Float32Array();
  state.scored = [];
  state.words.clear();
  [wanted, asked] = [new Set(), new Set()];
  recount(); // before anything is drawn: the rows were those of the old sentences
}

async function loadScores() {
  if (state.busy) return; // who asked first goes on until the scores are of now
  state.busy = true;
  changed("busy");
  let reviews;
  try {
    for (let attempt = 0; attempt < 20; attempt++) {
      const { values, headers } = await api.floats("/v1/project/scores");
      reviews = Number(headers.get("x-awatt-reviews"));
      if (reviews === state.reviews) { // else of other sentences than those that are shown
        state.scores = values;
        state.learned = Number(headers.get("x-awatt-learned"));
        state.scored = (headers.get("x-awatt-aspects") || "").split(",").filter(Boolean).map(Number);
        state.words.clear();
      }
      if (reviews > state.reviews || state.learned >= state.project.learned) break;
      await new Promise((resolve) => setTimeout(resolve, 20 * attempt));
    } // then they are asked for again later
  } finally {
    state.busy = false;
    changed("busy");
  }
  if (reviews > state.reviews) { await reload(); return; } // somebody has loaded others meanwhile
  const before = state.marks, again = state.detected === state.reviews;
  recount();
  if (again) state.moved = state.marks.reduce((sum, mark, row) => sum + (mark !== before[row]), 0);
  state.detected = state.reviews;
  changed();
}

// Once the page has taken the project that the server answered with: whatever else that makes it need. Gives whether
// it was answered; what else is missing will be asked for again.
async function after(taken) {
  try {
    await taken;
  } catch (error) {
    say(error.message, true);
    if (error.status === 404 || error.status === 409) await reload(); // somebody else was faster: show what they did
    return false;
  }
  try {
    await catchUp();
  } catch (error) {
    say(error.message, true);
  }
  return true;
}

export const reload = () => after(api.get("/v1/project").then(take));

// Changes are sent one after the other, each when the page knows what came of the one before: so quick keys build on
// each other, and undo takes back the last thing that a person did, not the last that had arrived.
let last = Promise.resolve(), waiting = 0;
export function inTurn(request) {
  waiting++;
  const answer = last.then(request).finally(() => { waiting--; });
  last = answer.catch(() => {}); // said by who asked
  return answer;
}
addEventListener("beforeunload", (event) => { if (waiting) event.preventDefault(); });

// Do something on the server, and show the project as it then is.
export const act = (request) => after(inTurn(() => request().then(take)));

// Labels, and their removal (null), are shown at once; until the server has written one, it is pending.
const pending = new Map();
export const saving = (row) => pending.has(state.texts[row]);

export function label(row, ids) {
  const text = state.texts[row], id = state.ids[row], mine = ids && new Set(ids), shown = saidOf(row);
  if (mine ? shown?.size === mine.size && ids.every((each) => shown.has(each)) : !shown) return;
  // What had been said of it when the person looked, or after what they have just done, which is on its way.
  const said = () => state.project.examples.find((e) => e.text === text)?.aspects ?? null, early = !waiting, seen = said();
  pending.set(text, mine);
  judgedAnew();
  const written = () => { if (pending.get(text) === mine) pending.delete(text); };
  const refused = (error) => { judgedAnew(); throw error; }; // it is not shown any longer
  act(() => api.put(`/v1/project/sentences/${id}`, { aspects: ids, seen: early ? seen : said() }).finally(written).catch(refused));
}

// Words of sentences are asked for together, a moment after they are wanted.
export function wantWords(row) {
  const id = state.ids[row];
  if (state.words.has(id) || wanted.has(id) || asked.has(id)) return;
  wanted.add(id);
  timer ??= setTimeout(askWords, 30);
}

async function askWords() {
  const ids = [...wanted].slice(-200), { learned } = state, mine = asked;
  timer = null;
  wanted.clear();
  if (!ids.length) return;
  const again = () => { for (const id of ids) mine.delete(id); changed("words"); }; // what is still in sight and missing
  for (const id of ids) mine.add(id);
  try {
    const { words } = await api.post("/v1/project/words", { ids });
    if (learned === state.learned && mine === asked) for (const id of ids) state.words.set(id, words[id] ?? {});
    again();
  } catch (error) {
    say(error.message, true);
    setTimeout(again, 4000);
  }
}
