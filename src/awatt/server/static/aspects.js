// Aspects and their examples, and an estimate of the quality.

import * as api from "./api.js";
import { byId, counted, el, fill, filling, notify, percent } from "./dom.js";
import { show } from "./app.js";
import { importCard } from "./import.js";
import { drawPeople, loadPeople, people } from "./people.js";
import { drawMeasured, loadMeasured, measured } from "./quality.js";
import { drawSuggestions, loadSuggestions, suggested } from "./suggestions.js";
import { NO_FILTER, act, aspects, colour, isGuess, isLearned, labelOf, onChange, score, setFilter, state, thresholdOf } from "./state.js";

const box = byId("view-aspects"), summary = el("div", { className: "card quality", "aria-live": "polite" }), list = el("div", { className: "cards" });
const name = el("input", { id: "new-name", maxLength: 100 });
const names = el("input", { id: "names", maxLength: 2000, placeholder: "battery, screen, price", title: 'Quotes keep a comma in a name: "waiting time, queue", price' });
const texts = el("textarea", { id: "new-examples", rows: 4 });
let report = null, reportVersion = -1, loadingReport = false, visible = false;

const lines = (area) => area.value.split("\n").map((text) => text.trim()).filter(Boolean);

async function add() {
  if (!name.value.trim()) { name.focus(); return; }
  const [typedName, typedTexts] = [name.value, texts.value], body = { name: typedName, examples: lines(texts) };
  name.value = texts.value = "";
  name.focus();
  if (await act(() => api.post("/v1/aspects", body)) || name.value || texts.value) return;
  [name.value, texts.value] = [typedName, typedTexts];
}

// The names that --aspects would take: a row of CSV, where quotes keep a comma in a name, or a JSON list. None if a quote or the list is broken.
export function parseNames(given) {
  const cell = / *(?:"((?:[^"]|"")*)"|([^", ][^,]*)?)(,|$)/y, found = [];
  if (given.trimStart().startsWith("[")) {
    try { found.push(...JSON.parse(given)); } catch { return []; }
    if (found.some((name) => typeof name !== "string")) return [];
  } else {
    let match;
    do {
      match = cell.exec(given);
      if (!match) return [];
      found.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? "");
    } while (match[3]);
  }
  return found.map((name) => name.trim().replace(/\s+/g, " ")).filter(Boolean);
}

// Several aspects by their names alone: their sentences are found at once, as guesses.
async function addNames() {
  const wanted = parseNames(names.value);
  if (!wanted.length) {
    names.focus();
    if (names.value.trim()) notify('These are not names with commas between them. A name that contains a comma needs quotes: "waiting time, queue", price.', true);
    return;
  }
  if (!await act(() => api.post("/v1/aspects/names", { names: wanted }))) return;
  names.value = "";
  if (document.body.dataset.view !== "aspects") return; // the user has moved on
  show(state.texts.length ? "sentences" : "start");
  if (!state.texts.length) { notify("Now load reviews to find them in."); return; }
  const named = aspects().filter((aspect) => wanted.includes(aspect.name)), guessed = named.filter(isGuess), learned = named.filter((aspect) => isLearned(aspect) && !isGuess(aspect));
  showGuesses(guessed);
  if (guessed.length) notify("These are guesses from the names, marked with a question mark, sure and doubtful ones in turn. Accept or correct a few: each becomes an example.");
  else if (learned.length) notify(`Nothing to guess: ${learned.map((aspect) => aspect.name).join(", ")} ${learned.length === 1 ? "has" : "have"} examples already.`);
  else notify("The model cannot read these names. Label some sentences: each becomes an example.");
}

// The sentences in which these aspects are found, of each aspect in turn: the surest, then one from the middle, then from each half and so on. The surest alone teach little
// (results/LOG.md), and scraps such as "the room ..." come last.
const isScrap = (row) => state.texts[row].split(/\s+/, 5).length < 5;
// Numbers with their bits reversed: the first ones are spread evenly, however many are looked at.
const spread = (rows) => {
  const bits = Math.ceil(Math.log2(Math.max(2, rows.length))), reversed = (i) => parseInt([...i.toString(2).padStart(bits, "0")].reverse().join(""), 2);
  return Array.from({ length: 2 ** bits }, (_, i) => rows[reversed(i)]).filter((row) => row !== undefined);
};
function showGuesses(guessed) {
  const rank = new Map(), different = [...new Map(state.texts.map((text, row) => [text, row])).values()]; // a label is of all sentences with that text
  for (const aspect of guessed) {
    const rows = different.filter((row) => !labelOf(row) && score(row, aspect) >= thresholdOf(aspect)).sort((a, b) => score(b, aspect) - score(a, aspect));
    [...spread(rows.filter((row) => !isScrap(row))), ...rows.filter(isScrap)].forEach((row, place) => rank.set(row, Math.min(place, rank.get(row) ?? Infinity)));
  }
  const rows = [...rank.keys()].sort((a, b) => rank.get(a) - rank.get(b));
  if (!rows.length) return;
  state.chosen = null; // keys act on the first of them, not on one that is out of sight
  setFilter({ ...NO_FILTER, only: new Set(rows.map((row) => state.ids[row])), title: "Guesses" });
}

// A name is sent when its field loses the focus, an example with Enter. By the time of the response, everything may have been redrawn.
async function rename(aspect, title) {
  const body = { name: title.value };
  if (filling || title.value === title.defaultValue) return;
  title.defaultValue = title.value; // so that it does not count as being typed
  if (!await act(() => api.patch(`/v1/aspects/${aspect.id}`, body))) draw();
}

async function addExample(aspect, more) {
  const text = more.value;
  if (!text.trim()) return;
  more.value = "";
  if (await act(() => api.post(`/v1/aspects/${aspect.id}/examples`, { texts: [text] }))) return;
  const field = byId(`more-${aspect.id}`);
  if (field && !field.value) field.value = text;
}

function card(aspect, column) {
  const quality = report?.aspects.find((a) => a.name === aspect.name);
  const examples = state.project.examples.filter((e) => e.aspects.includes(aspect.id));
  const suspects = new Map((report?.suspects ?? []).map((s) => [s.text, s]));
  const title = el("input", { defaultValue: aspect.name, className: "title", id: `title-${aspect.id}`, "aria-label": `Name of ${aspect.name}`, maxLength: 100, onblur: () => rename(aspect, title), onkeydown: (event) => {
    if (event.key === "Escape") title.value = title.defaultValue;
    if (event.key === "Enter") rename(aspect, title); } });
  const more = el("input", { className: "more", placeholder: "Add an example and press Enter", "aria-label": `Add an example of ${aspect.name}`, id: `more-${aspect.id}`, onkeydown: (event) => { if (event.key === "Enter") addExample(aspect, more); } });
  return el("article", { className: "card", colour: colour(column), "aria-label": aspect.name },
    el("div", { className: "head" }, el("i", { className: "dot" }), title, el("button", { className: "reset", title: "Remove", "aria-label": `Remove ${aspect.name}`, onclick: async () => { name.focus(); if (await act(() => api.remove(`/v1/aspects/${aspect.id}`))) notify(`Removed ${aspect.name}. Undo brings it back.`); } }, "✕")),
    el("p", { className: "hint" }, isGuess(aspect) ? "No example yet: guessed from its name. Accept or correct some of its sentences"
      : !isLearned(aspect) ? "Not learned: it has no example, and the model cannot read its name. Add an example" : counted(examples.length, "example"), examples.length < 3 ? " (about five are recommended)" : "",
      quality && quality.f1 !== null ? quality.recall ? `; finds ${percent(quality.recall)} of them, and ${percent(quality.precision)} of what it finds is right` : "; finds none of them yet" : ""),
    quality && quality.f1 !== null ? meter(quality.f1) : null,
    el("ul", {}, ...examples.map((e) => el("li", { className: suspects.has(e.text) ? "suspect" : "" }, el("span", {}, e.text, e.corrected ? el("small", {}, " ✓") : null,
      suspects.has(e.text) ? el("small", {}, ` looks like ${suspects.get(e.text).looks_like.join(", ")}`) : null),
      el("button", { className: "reset", "aria-label": `Remove the example ${e.text.slice(0, 60)}`, title: "Remove", onclick: () => { more.focus(); act(() => api.remove(`/v1/examples/${e.id}`)); } }, "✕")))),
    more);
}

function meter(value) {
  const bar = el("span", { className: "bar wide" }, el("i", {}));
  bar.firstChild.style.setProperty("width", `${100 * value}%`);
  return bar;
}

async function loadReport() {
  const learned = state.project.learned;
  if (!visible || reportVersion === learned) return;
  reportVersion = learned;
  loadingReport = state.project.examples.length > 1;
  if (loadingReport) drawQuality();
  let found = null;
  try {
    if (loadingReport) found = await api.get("/v1/report");
  } catch (error) { // 422: too few examples for a report
    if (error.status !== 422 && reportVersion === learned) { reportVersion = -1; scheduleReport(4000); return; }
  }
  if (reportVersion !== learned) return; // a newer one has been requested
  [report, loadingReport] = [found, false];
  draw();
}

function scheduleReport(pause) {
  clearTimeout(loadReport.timer);
  loadReport.timer = setTimeout(loadReport, pause);
}

function drawQuality() {
  if (!report) {
    fill(summary, ...loadingReport ? [el("h2", {}, "Quality"), el("p", {}, "Predicting each example from the others …")] : [ el("h2", {}, "How it works"), el("p", {}, "Name what matters to you, and add about five sentences that mention it, in the words of your reviews. Sentences that mention several aspects help, too.")]);
    return;
  }
  const expected = report.expected_f1, two = (value) => value.toFixed(2);
  fill(summary,
    el("h2", {}, "Quality"),
    expected
      ? el("p", {}, el("strong", {}, `Expect an F1 of about ${two(expected.value)}`), ` (${two(expected.low)} to ${two(expected.high)}; 1 is perfect).`)
      : report.n_reviews === null ? null : el("p", {}, el("strong", {}, "The quality cannot be estimated yet."), " Label some thirty randomly chosen sentences, including those that mention none of the aspects."),
    report.f1 === null ? null : el("p", {}, `Each of the ${report.n_examples} examples was predicted from others only: F1 ${two(report.f1)}.`),
    report.confusions.length ? el("p", {}, "Often confused: ", report.confusions.slice(0, 5).map((c) => `${c.aspects.join(" and ")} (${c.mixed_up} of ${c.examples} examples)`).join("; "), ".") : null,
    report.suspects.length ? el("p", {}, `${counted(report.suspects.length, "example")} may be mislabelled (marked among the examples).`) : null);
}

export function draw() {
  if (!box.childElementCount) {
    box.append(el("h1", {}, "Aspects"), el("div", { className: "cards two" },
      el("form", { className: "card new", id: "by-name", onsubmit: (event) => { event.preventDefault(); addNames(); } }, el("h2", {}, "Begin with names"),
        el("label", { htmlFor: "names" }, "Names of aspects, separated by commas"), names,
        el("button", { className: "main", type: "submit" }, "Find them"), el("p", { className: "hint" }, "Their sentences are found at once, by the names alone. These are guesses for you to accept or correct.")),
      el("form", { className: "card new", id: "by-examples", onsubmit: (event) => { event.preventDefault(); add(); } }, el("h2", {}, "New aspect with examples"),
        el("label", { htmlFor: "new-name" }, "Name, for example parking"), name, el("label", { htmlFor: "new-examples" }, "Examples, one per line"), texts,
        el("button", { type: "submit" }, "Add"))), suggested, list, el("div", { className: "cards two" }, summary, measured, people, importCard));
  }
  drawQuality();
  fill(list, ...aspects().map(card));
}

export function setVisible(now) {
  visible = now;
  if (now && state.project) { draw(); drawMeasured(); drawPeople(); drawSuggestions(); loadReport(); loadMeasured(); loadPeople(); loadSuggestions(); }
}

onChange((what) => { if (visible && what === "all") { draw(); scheduleReport(400); loadMeasured(); loadPeople(); loadSuggestions(); } });
