// Loading reviews: a file that is chosen or dropped anywhere on the page, pasted text, or a sample.

import * as api from "./api.js";
import { byId, counted, el, fill, notify, number, progress } from "./dom.js";
import { act, aspects, enqueue, onChange, reload, state } from "./state.js";
import { show } from "./app.js";
import { formatOf } from "./formats.js";
import { importLabels } from "./import.js";

const box = byId("view-start");

const paste = el("textarea", { rows: 6, id: "paste", placeholder: "Or paste them here, one review per line.\nThe soup was cold, but the waiter was lovely.", "aria-label": "Reviews, one per line", oninput: update });
const split = el("input", { type: "checkbox", checked: true });
const choice = el("div", { className: "choice" });
const fileName = el("span", { id: "file-name", "aria-live": "polite" }, "or drop one anywhere on this page");
const file = el("input", { type: "file", id: "file", className: "spoken", "aria-label": "A file with reviews", accept: ".csv,.tsv,.tab,.jsonl,.ndjson,.json,.parquet,.xlsx,.txt,.gz", onchange: () => {
  const [given] = file.files;
  file.value = ""; // so that the same file can be chosen again after a correction
  if (given) chooseFile(given);
} });
const loadButton = el("button", { className: "main", id: "load", disabled: true, onclick: () => (chosen ? load(chosen.content, chosen.format, chosen.column(), chosen.keep(), chosen.name) : load(new Blob([paste.value]), "txt", "text", [], "pasted text")) }, "Load");
const another = el("button", { id: "no-file", hidden: true, onclick: () => { forget(); byId("file").focus(); } }, "Not this file");
let chosen = null, latest = null; // the file that Load would load, and the one that was chosen last, which may still be read

function update() {
  loadButton.disabled = loading || !(chosen || paste.value.trim());
  paste.hidden = Boolean(chosen);
  another.hidden = !chosen;
}

function forget() {
  [chosen, latest] = [null, null];
  fileName.textContent = "or drop one anywhere on this page";
  choice.replaceChildren();
  update();
}

// One load at a time: a second click does not load again.
let loading = false;
const once = (call) => async (...values) => {
  if (loading) return;
  loading = true;
  update();
  try { await call(...values); } finally { loading = false; progress(null); update(); }
};
const isShown = () => document.body.dataset.view === "start"; // after a load, only a user who is still here is moved to another view

// What the server is doing, asked for while it works; Cancel lets it stop, and nothing is changed.
const POLL = 300; // milliseconds
let cancelled = false, poll = null;
function watch(name) {
  const doing = { reading: (done) => `Reading ${name} …${done ? ` ${counted(done, "review")}` : ""}`, detecting: (done, total) => `Detecting … ${number(done)} of ${counted(total, "sentence")}` };
  poll = setInterval(async () => {
    try {
      const { doing: what, done, total } = await api.get("/v1/project/progress");
      if (poll && !cancelled && doing[what]) progress(doing[what](done, total), done, total);
    } catch { /* the load itself says what is wrong */ }
  }, POLL);
}

byId("cancel").addEventListener("click", async () => {
  cancelled = true;
  progress("Cancelling …");
  try { await api.remove("/v1/project/progress"); } catch { /* it is taken back once it has been loaded */ }
});

const stillHere = () => notify("Cancelled. The reviews have not changed.");

// Reviews that were loaded before they could be cancelled: they are taken back, but nothing that others did since.
async function takeBack(revision) {
  let taken = false;
  const done = await act(async () => {
    const project = await api.get("/v1/project");
    taken = project.undo === "load reviews" && project.revision === revision;
    return taken ? api.post("/v1/project/undo", { revision }) : project;
  });
  if (done && taken) stillHere();
  else if (done) notify("The reviews were loaded before they could be cancelled, and the project has been changed since. Undo takes back one action at a time.", true);
}

const load = once(async (body, format, column, keep, name) => {
  cancelled = false;
  try {
    const before = state.texts.length;
    let revision; // before this load
    progress(`Reading ${name} …`);
    watch(name);
    const query = new URLSearchParams({ format, column, split: split.checked, name });
    for (const each of keep.length ? keep : [""]) query.append("keep", each);
    const done = await enqueue(() => {
      revision = state.project?.revision;
      return api.upload(`/v1/project/reviews?${query}`, body);
    });
    if (!cancelled) {
      byId("language").hidden = done.english; // said before anything is detected, until other reviews are loaded
      progress(`Detecting in ${counted(done.reviews, "review")} …`);
      if (!await reload()) return; // the error has been shown
    }
    if (cancelled) { await takeBack(revision + 1); return; }
    if (state.reviews !== state.project.reviews) return;
    const next = state.project.aspects.length ? before ? " Undo brings the earlier ones back." : "" : " Now name the aspects to find.";
    const skipped = done.left_out ? ` ${counted(done.left_out, "row")} could not be read: ${done.faults[0]}` : "";
    notify(`${counted(done.reviews, "review")}, ${counted(state.texts.length, "sentence")}.${next}${skipped}`, done.left_out > 0);
    paste.value = "";
    forget();
    if (isShown()) show(state.project.aspects.length ? "sentences" : "aspects");
  } catch (error) {
    if (error.code === "cancelled") stillHere();
    else notify(error.message, true);
  } finally {
    clearInterval(poll);
    poll = null;
  }
});

async function chooseFile(given) {
  forget();
  latest = given;
  const format = formatOf(given.name);
  if (!format) { notify(`The suffix of ${given.name} is unknown. Use .csv, .tsv, .xlsx, .jsonl, .json, .parquet or .txt; all but .xlsx and .json also with .gz.`, true); return; }
  let content; // read now: the file may change on disk
  try {
    content = new Blob([await given.arrayBuffer()]);
  } catch {
    notify(`${given.name} cannot be read. Choose it again.`, true);
    return;
  }
  try {
    const { columns, rows } = await api.upload(`/v1/project/columns?${new URLSearchParams({ format })}`, content);
    if (latest !== given) return; // another file was chosen meanwhile
    const { column, keep } = showPreview(columns, rows);
    chosen = { content, format, name: given.name, column, keep };
    if (["text", "aspects"].every((name) => columns.includes(name))) offerLabels();
    fileName.textContent = given.name;
    update();
    loadButton.focus();
  } catch (error) {
    if (latest === given) notify(error.message, true);
  }
}

// A file with labels can also be imported as such.
function offerLabels() {
  const { content, format, name } = chosen;
  choice.append(el("p", { className: "hint" }, "This file has labels. ", el("button", { id: "import-labels", onclick: once(async () => { if (await importLabels(content, format, name)) { forget(); if (isShown()) show("aspects"); } }) }, "Import them as examples instead")));
}

// The first rows, and the choice of the column with the text (the one of that name, or the one with the longest texts) and
// of the other columns to keep.
function showPreview(columns, rows) {
  const size = (name) => rows.reduce((sum, row) => sum + (row[name] ?? "").length, 0), kept = new Map();
  const mark = () => {
    for (const cell of table.querySelectorAll("[data-column]")) {
      const name = cell.dataset.column;
      cell.classList.toggle("read", name === select.value);
      cell.classList.toggle("dropped", name !== select.value && !kept.get(name).checked);
    }
    for (const [name, box] of kept) box.disabled = name === select.value;
  };
  for (const name of columns) kept.set(name, el("input", { type: "checkbox", checked: true, "aria-label": `Keep the column ${name}`, onchange: () => mark() }));
  const select = el("select", { id: "text-column", onchange: () => mark() }, ...columns.map((name) => el("option", { value: name }, name)));
  const cell = (tag, name, content, props = {}) => el(tag, { ...props, "data-column": name }, ...content);
  const table = el("table", {}, el("thead", {}, el("tr", {}, ...columns.map((name) => cell("th", name, [kept.get(name), " ", name], { scope: "col" })))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...columns.map((name) => cell("td", name, [row[name] ?? ""], { title: row[name] ?? "" }))))));
  select.value = columns.includes("text") ? "text" : [...columns].sort((a, b) => size(b) - size(a))[0];
  mark();
  choice.replaceChildren(el("label", { htmlFor: "text-column" }, "Column with the text "), select, el("p", { className: "hint" }, columns.length > 1 ? "The other columns are kept if they are ticked." : ""),
    el("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "The first rows of the file" }, table));
  return { column: () => select.value, keep: () => columns.filter((name) => name !== select.value && kept.get(name).checked) };
}

const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
for (const kind of ["dragenter", "dragover"]) addEventListener(kind, (event) => { if (holdsFiles(event)) { event.preventDefault(); document.body.classList.add("dropping"); } });
addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
// Text or a file that is pasted anywhere but into a field is a choice like any other.
addEventListener("paste", (event) => {
  const { files } = event.clipboardData ?? {}, text = event.clipboardData?.getData("text/plain") ?? "";
  if (loading || event.target.matches("input, textarea") || document.querySelector("dialog[open]") || !(files?.length || text.trim())) return;
  event.preventDefault();
  show("start");
  if (files.length) { chooseFile(files[0]); return; }
  forget();
  paste.value = text;
  update();
  paste.focus();
});
addEventListener("drop", (event) => {
  document.body.classList.remove("dropping");
  if (!holdsFiles(event)) return;
  event.preventDefault();
  if (loading || !event.dataTransfer.files.length) return;
  show("start");
  chooseFile(event.dataTransfer.files[0]);
});

const sample = once(async (domain) => {
  const before = state.texts.length || aspects().length;
  if (!await act(() => api.post("/v1/project/sample", { domain }))) return;
  byId("language").hidden = true;
  if (isShown()) show("sentences");
  if (before) notify("The sample is loaded. Undo brings back the previous project.");
});

const clear = once(async () => {
  let before;
  const request = () => { before = state.project?.revision; return api.remove("/v1/project"); };
  if (await act(request)) notify(state.project.revision === before ? "The project is empty already." : "The project is empty. Undo brings back the previous content.");
});

const loaded = el("p", { className: "lead", id: "loaded" });
function drawLoaded() {
  const { project, texts } = state;
  loaded.hidden = !texts.length;
  if (project) fill(loaded, el("strong", {}, project.file ?? "Reviews"), ` in ${project.name}: ${counted(project.n_reviews, "review")}, ${counted(texts.length, "sentence")}.`);
}
onChange((what) => { if (what === "all") drawLoaded(); });

export function draw() {
  drawLoaded();
  if (box.childElementCount) return;
  box.append(
    el("h1", {}, "What do your reviews talk about?"),
    el("p", { className: "lead" }, "Load reviews and name what matters to you. You see immediately which sentences mention it, and which words decided."), loaded,
    el("div", { className: "cards two" },
      el("div", { className: "card", id: "load-card" }, el("h2", {}, "Load your reviews"),
        el("p", { className: "file" }, file, el("label", { className: "button", htmlFor: "file" }, "Choose a file"), fileName, " ", another), paste, choice,
        el("p", {}, el("label", {}, split, " Split reviews into sentences")),
        el("div", { className: "buttons" }, loadButton),
        el("p", { className: "hint" }, "CSV or TSV with any delimiter, Excel, JSONL, JSON, Parquet or plain text; gzipped tables need UTF-8 and commas or tabs. Reviews are sent to your own awatt serve and nowhere else. They replace the loaded reviews; aspects and examples are kept. You can undo it.")),
      el("div", { className: "card" }, el("h2", {}, "Try a sample"), el("p", {}, "Sentences with aspects and examples, ready to explore. A sample replaces everything; you can undo it."),
        el("div", { className: "buttons" }, ...["restaurant", "hotel", "laptop"].map((domain) => el("button", { id: `sample-${domain}`, onclick: () => sample(domain) }, domain[0].toUpperCase() + domain.slice(1)))),
        el("h2", { className: "later" }, "Start over"), el("div", { className: "buttons" }, el("button", { id: "start-over", onclick: clear }, "Empty the project")))));
  update();
}
