// Who labels, who labelled what, and how far people agree.

import * as api from "./api.js";
import { byId, counted, el, fill, notify } from "./dom.js";
import { show } from "./app.js";
import { startQueue } from "./queue.js";
import { NO_FILTER, applyLabels, person, setFilter, state } from "./state.js";

export const people = el("div", { className: "card", id: "people", "aria-live": "polite" });
const AT_ONCE = 20;
let found = null, version = -1;

export async function loadPeople() {
  const wanted = state.project.revision;
  if (version === wanted) return;
  version = wanted;
  try {
    const response = await api.get("/v1/project/people");
    if (version === wanted) found = response; // otherwise a newer one has been requested
  } catch {
    if (version === wanted) version = -1; // requested again with the next change
  }
  drawPeople();
}

function rename(name) {
  localStorage.setItem("awatt-person", name.trim());
  applyLabels();
  drawPeople();
}

const firstRows = () => { const rows = new Map(); state.texts.forEach((text, row) => { if (!rows.has(text)) rows.set(text, row); }); return rows; };

// Sentences that others have labelled and this person has not.
function toCheck() {
  const rows = firstRows(), me = person();
  return state.project.examples.filter((e) => Object.keys(e.votes).length && !(me in e.votes) && rows.has(e.text)).map((e) => state.ids[rows.get(e.text)]);
}

function secondOpinion() {
  const ids = toCheck();
  if (!ids.length) { notify("You have labelled every sentence that others have labelled."); return; }
  show("sentences");
  startQueue(ids.slice(0, AT_ONCE), "Second opinion", { blind: true, again: secondOpinion });
}

function showDiffering() {
  const rows = firstRows(), texts = state.project.examples.filter((e) => found.differing.includes(e.id)).map((e) => e.text).filter((text) => rows.has(text));
  if (!texts.length) { notify("They are not among the reviews that are loaded."); return; }
  show("sentences");
  setFilter({ ...NO_FILTER, only: new Set(texts.map((text) => state.ids[rows.get(text)])), title: "Disagreements" });
}

const nameOf = (name) => (name === person() ? `${name || "no name"} (you)` : name || "no name"), two = (value) => (value === null ? "–" : value.toFixed(2));

function agreement({ people: pair, n_sentences: count, aspects, overall }) {
  const row = (each) => el("tr", {}, el("th", { scope: "row" }, each.name), el("td", {}, `${two(each.agreed.value)} (${two(each.agreed.low)}–${two(each.agreed.high)})`), el("td", {}, two(each.kappa)));
  return [el("p", {}, el("strong", {}, pair.map(nameOf).join(" and ")), `: ${counted(count, "sentence")} labelled by both.`),
    el("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": `Agreement of ${pair.map(nameOf).join(" and ")}` }, el("table", { className: "agreement" },
      el("thead", {}, el("tr", {}, ...["Aspect", "Agreement", "Kappa"].map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, row(overall), ...aspects.map(row))))];
}

export function drawPeople() {
  if (!state.project) return;
  const name = el("input", { id: "person", maxLength: 100, defaultValue: person(), placeholder: "Your name", onchange: () => rename(name.value) });
  const others = found?.people.some((each) => each.name !== person()), checks = others ? toCheck().length : 0;
  fill(people, el("h2", {}, "Who labels"),
    el("div", { className: "new" }, el("label", { htmlFor: "person" }, "Your name, kept with your labels"), name),
    found?.people.length ? el("p", {}, found.people.map((each) => `${nameOf(each.name)}: ${counted(each.labelled, "sentence")}`).join("; "), ".") : el("p", { className: "hint" }, "If two people label the same sentences, you see here how far they agree."),
    ...(found?.agreements ?? []).flatMap(agreement),
    found?.agreements.length ? el("p", { className: "hint" }, "Kappa is the agreement beyond chance: 1 is complete, 0 is chance. In brackets the 95 % intervals.") : null,
    el("div", { className: "buttons" },
      checks ? el("button", { id: "second-opinion", onclick: secondOpinion }, `Second opinion on ${counted(Math.min(checks, AT_ONCE), "sentence")}`) : null,
      found?.differing.length ? el("button", { id: "see-differing", onclick: showDiffering }, `See ${counted(found.differing.length, "disagreement")}`) : null));
}
