// Loading reviews: pasted text, a file, or a sample.

import * as api from "./api.js";
import { byId, counted, el, notify } from "./dom.js";
import { act, aspects, enqueue, reload, state } from "./state.js";
import { show } from "./app.js";

const box = byId("view-start");
const FORMATS = { csv: "csv", tsv: "tsv", jsonl: "jsonl", ndjson: "jsonl", parquet: "parquet", txt: "txt" };

const paste = el("textarea", { rows: 7, id: "paste", placeholder: "One review per line.\nThe soup was cold, but the waiter was lovely.", "aria-label": "Reviews, one per line" });
const split = el("input", { type: "checkbox", checked: true });
const choice = el("div", { className: "choice" });
const file = el("input", { type: "file", id: "file", "aria-label": "A file with reviews", accept: ".csv,.tsv,.jsonl,.ndjson,.parquet,.txt,.gz", onchange: () => file.files[0] && previewFile(file.files[0]) });
let chosenFile = null; // the file that was chosen last

// One load at a time: a second click does not load again.
let loading = false;
const once = (call) => async (...values) => {
  if (loading) return;
  loading = true;
  try { await call(...values); } finally { loading = false; }
};
const isShown = () => document.body.dataset.view === "start"; // after a load, only a user who is still here is moved to another view

const load = once(async (body, format, column = "text") => {
  try {
    const before = state.texts.length;
    notify("Reading …");
    const query = new URLSearchParams({ format, column, split: split.checked });
    const done = await enqueue(() => api.upload(`/v1/project/reviews?${query}`, body));
    if (!await reload() || state.reviews !== state.project.reviews) return; // the error has been shown
    const next = state.project.aspects.length ? before ? " Undo brings the earlier ones back." : "" : " Now add an aspect with a few examples.";
    const skipped = done.left_out ? ` ${counted(done.left_out, "row")} could not be read: ${done.faults[0]}` : "";
    notify(`${counted(done.reviews, "review")}, ${counted(state.texts.length, "sentence")}.${next}${skipped}`, done.left_out > 0);
    choice.replaceChildren();
    paste.value = "";
    if (isShown()) show(state.project.aspects.length ? "sentences" : "aspects");
  } catch (error) {
    notify(error.message, true);
  }
});

async function previewFile(chosen) {
  chosenFile = chosen;
  choice.replaceChildren();
  const parts = chosen.name.toLowerCase().split("."), zipped = parts.at(-1) === "gz";
  if (zipped) parts.pop();
  const format = FORMATS[parts.at(-1)];
  if (!format) { notify(`The suffix of ${chosen.name} is unknown. Use .csv, .tsv, .jsonl, .parquet or .txt, optionally with .gz.`, true); return; }
  const kind = format + (zipped ? ".gz" : "");
  let content; // read now: the file may change on disk
  try {
    content = new Blob([await chosen.arrayBuffer()]);
  } catch {
    notify(`${chosen.name} cannot be read. Choose it again.`, true);
    return;
  } finally {
    file.value = ""; // so that the same file can be chosen again after a correction
  }
  if (format === "txt") { load(content, kind); return; }
  try {
    const { columns, rows } = await api.upload(`/v1/project/columns?${new URLSearchParams({ format: kind })}`, content);
    if (chosenFile !== chosen) return; // another file was chosen meanwhile
    const size = (name) => rows.reduce((sum, row) => sum + (row[name] ?? "").length, 0);
    const select = el("select", { "aria-label": "Column with the text" }, ...columns.map((name) => el("option", { value: name }, name)));
    select.value = columns.includes("text") ? "text" : [...columns].sort((a, b) => size(b) - size(a))[0];
    choice.replaceChildren(
      el("label", {}, `Column of ${chosen.name} with the text `, select), " ", el("button", { className: "main", onclick: () => load(content, kind, select.value) }, "Load"),
      el("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "The first rows of the file" }, el("table", {}, el("thead", {}, el("tr", {}, ...columns.map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, ...rows.map((row) => el("tr", {}, ...columns.map((name) => el("td", {}, row[name] ?? ""))))))));
  } catch (error) {
    notify(error.message, true);
  }
}

const sample = once(async (domain) => {
  const before = state.texts.length || aspects().length;
  if (!await act(() => api.post("/v1/project/sample", { domain }))) return;
  if (isShown()) show("sentences");
  if (before) notify("The sample is loaded. Undo brings back the previous project.");
});

async function clear() {
  if (await act(() => api.remove("/v1/project"))) notify("The project is empty. Undo brings back the previous content.");
}

export function draw() {
  if (box.childElementCount) return;
  box.append(
    el("h1", {}, "What do your reviews talk about?"),
    el("p", { className: "lead" }, "Name what matters to you and give about five example sentences for each. You see immediately which sentences mention it, and which words decided."),
    el("div", { className: "cards" },
      el("div", { className: "card" }, el("h2", {}, "Try a sample"), el("p", {}, "Sentences with aspects and examples, ready to explore."),
        el("div", { className: "buttons" }, ...["restaurant", "hotel", "laptop"].map((domain, i) => el("button", { className: i ? "" : "main", id: `sample-${domain}`, onclick: () => sample(domain) }, domain[0].toUpperCase() + domain.slice(1))))),
      el("div", { className: "card" }, el("h2", {}, "Open a file"), el("p", {}, "CSV, TSV, JSONL, Parquet or plain text, optionally gzipped. It is sent to your own awatt serve and nowhere else."), file, choice),
      el("div", { className: "card" }, el("h2", {}, "Paste reviews"), paste, el("div", { className: "buttons" }, el("button", { className: "main", onclick: () => paste.value.trim() ? load(new Blob([paste.value]), "txt") : paste.focus() }, "Load")))),
    el("div", { className: "below" }, el("label", {}, split, " Split the reviews of a file or of pasted text into sentences"),
      el("p", { className: "hint" }, "New reviews replace the loaded ones; aspects and examples are kept. A sample replaces everything. Both can be undone."),
      el("button", { id: "start-over", onclick: clear }, "Start over with an empty project")));
}
