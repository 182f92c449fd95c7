// Aspects and their examples, and how good they are.

import * as api from "./api.js";
import { byId, el, fill, filling, percent, say } from "./dom.js";
import { act, aspects, colour, onChange, state } from "./state.js";

const box = byId("view-aspects"), quality = el("div", { className: "card quality", "aria-live": "polite" }), list = el("div", { className: "cards" });
const name = el("input", { id: "new-name", maxLength: 100 });
const texts = el("textarea", { id: "new-examples", rows: 4 });
let report = null, reported = -1, judging = false, visible = false;

const lines = (area) => area.value.split("\n").map((text) => text.trim()).filter(Boolean);

async function add() {
  if (!name.value.trim()) { name.focus(); return; }
  const [called, given] = [name.value, texts.value], body = { name: called, examples: lines(texts) };
  name.value = texts.value = "";
  name.focus();
  if (await act(() => api.post("/v1/aspects", body)) || name.value || texts.value) return;
  [name.value, texts.value] = [called, given];
}

// A name is taken when the field is left, an example with Enter; the field may be another one by the time of the answer.
async function rename(aspect, title) {
  const body = { name: title.value };
  if (filling || title.value === title.defaultValue) return;
  title.defaultValue = title.value; // so that it does not look like something that is being typed
  if (!await act(() => api.patch(`/v1/aspects/${aspect.id}`, body))) draw();
}

async function give(aspect, more) {
  const text = more.value;
  if (!text.trim()) return;
  more.value = "";
  if (await act(() => api.post(`/v1/aspects/${aspect.id}/examples`, { texts: [text] }))) return;
  const field = byId(`more-${aspect.id}`);
  if (field && !field.value) field.value = text;
}

function card(aspect, column) {
  const judged = report?.aspects.find((a) => a.name === aspect.name);
  const examples = state.project.examples.filter((e) => e.aspects.includes(aspect.id));
  const suspects = new Map((report?.suspects ?? []).map((s) => [s.text, s]));
  const title = el("input", { defaultValue: aspect.name, className: "title", id: `title-${aspect.id}`, "aria-label": `Name of ${aspect.name}`, maxLength: 100, onblur: () => rename(aspect, title), onkeydown: (event) => {
    if (event.key === "Escape") title.value = title.defaultValue;
    if (event.key === "Enter") rename(aspect, title); } });
  const more = el("input", { className: "more", placeholder: "Another example, then Enter", "aria-label": `Another example of ${aspect.name}`, id: `more-${aspect.id}`, onkeydown: (event) => { if (event.key === "Enter") give(aspect, more); } });
  return el("article", { className: "card", colour: colour(column), "aria-label": aspect.name },
    el("div", { className: "head" }, el("i", { className: "dot" }), title, el("button", { className: "reset", title: "Remove", "aria-label": `Remove ${aspect.name}`, onclick: async () => { name.focus(); if (await act(() => api.remove(`/v1/aspects/${aspect.id}`))) say(`Removed ${aspect.name}. Undo brings it back.`); } }, "✕")),
    el("p", { className: "hint" }, `${examples.length} ${examples.length === 1 ? "example" : "examples"}`, examples.length < 3 ? " (about five are a good number)" : "",
      judged && examples.length > 1 ? judged.recall ? `; finds ${percent(judged.recall)} of them, and ${percent(judged.precision)} of what it finds is right` : "; finds none of them yet" : ""),
    judged && examples.length > 1 ? meter(judged.f1) : null,
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

async function judge() {
  const learned = state.project.learned;
  if (!visible || reported === learned) return;
  reported = learned;
  judging = state.project.examples.length > 1;
  if (judging) drawQuality();
  let found = null;
  try {
    if (judging) found = await api.get("/v1/report");
  } catch (error) { // 422: one aspect only, or none, so there is nothing to confuse yet
    if (error.status !== 422 && reported === learned) { reported = -1; later(4000); return; }
  }
  if (reported !== learned) return; // a newer one is on its way
  [report, judging] = [found, false];
  draw();
}

function later(pause) {
  clearTimeout(judge.timer);
  judge.timer = setTimeout(judge, pause);
}

function drawQuality() {
  if (!report) {
    fill(quality, ...judging ? [el("h2", {}, "How good it is"), el("p", {}, "Judging each example by the others …")] : [ el("h2", {}, "How it works"), el("p", {}, "Name what matters to you, and give about five sentences that mention it, in the words of your reviews. Sentences that mention several aspects help, too.")]);
    return;
  }
  const [low, high] = report.f1_interval;
  fill(quality,
    el("h2", {}, "How good it is"),
    el("p", {}, el("strong", {}, `Expect an F1 of about ${report.f1.toFixed(2)}`), ` (${low.toFixed(2)} to ${high.toFixed(2)}; 1 is perfect). Each of the ${report.n_examples} examples was judged by the others: a cautious estimate.`),
    report.confusions.length ? el("p", {}, "Easily confused: ", report.confusions.slice(0, 5).map((c) => `${c.aspects.join(" and ")} (${c.mixed_up} of ${c.examples} examples)`).join("; "), ".") : null,
    report.suspects.length ? el("p", {}, `${report.suspects.length} ${report.suspects.length === 1 ? "example looks" : "examples look"} like another aspect. Check what is marked below.`) : null);
}

export function draw() {
  if (!box.childElementCount) {
    box.append(el("h1", {}, "Aspects"), el("div", { className: "cards two" },
      el("form", { className: "card new", onsubmit: (event) => { event.preventDefault(); add(); } }, el("h2", {}, "New aspect"),
        el("label", { htmlFor: "new-name" }, "Name, such as parking"), name, el("label", { htmlFor: "new-examples" }, "Examples, one a line"), texts,
        el("button", { className: "main", type: "submit" }, "Add")), quality), list);
  }
  drawQuality();
  fill(list, ...aspects().map(card));
}

export function setVisible(now) {
  visible = now;
  if (now && state.project) { draw(); judge(); }
}

onChange((what) => { if (visible && what === "all") { draw(); later(400); } });
