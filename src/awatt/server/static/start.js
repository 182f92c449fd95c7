// Reviews in: paste, a file, or the sample.

import * as api from "./api.js";
import { byId, el, number, say } from "./dom.js";
import { act, aspects, inTurn, reload, state } from "./state.js";
import { show } from "./app.js";

const box = byId("view-start");
const MARK = { csv: "csv", tsv: "tsv", jsonl: "jsonl", ndjson: "jsonl", parquet: "parquet", txt: "txt" };

const paste = el("textarea", { rows: 7, id: "paste", placeholder: "One review a line.\nThe soup was cold, but the waiter was lovely.", "aria-label": "Reviews, one a line" });
const split = el("input", { type: "checkbox", checked: true });
const choice = el("div", { className: "choice" });
const file = el("input", { type: "file", id: "file", "aria-label": "A file with reviews", accept: ".csv,.tsv,.jsonl,.ndjson,.parquet,.txt,.gz", onchange: () => file.files[0] && look(file.files[0]) });
let looked = null; // the file that was chosen last

// One at a time: a second click is no second load.
let loading = false;
const once = (call) => async (...given) => {
  if (loading) return;
  loading = true;
  try { await call(...given); } finally { loading = false; }
};
const here = () => document.body.dataset.view === "start"; // who has gone elsewhere meanwhile stays there

const load = once(async (body, format, column = "text") => {
  try {
    const before = state.texts.length;
    say("Reading …");
    const query = new URLSearchParams({ format, column, split: split.checked });
    const done = await inTurn(() => api.upload(`/v1/project/reviews?${query}`, body));
    if (!await reload() || state.reviews !== state.project.reviews) return; // it has said why
    const next = state.project.aspects.length ? before ? " Undo brings the earlier ones back." : "" : " Now name an aspect, and give a few examples of it.";
    say(`${number(done.reviews)} reviews, ${number(state.texts.length)} sentences.${next}${done.left_out ? ` ${number(done.left_out)} rows could not be read: ${done.faults[0]}` : ""}`, done.left_out > 0);
    choice.replaceChildren();
    paste.value = "";
    if (here()) show(state.project.aspects.length ? "sentences" : "aspects");
  } catch (error) {
    say(error.message, true);
  }
});

async function look(chosen) {
  looked = chosen;
  choice.replaceChildren();
  const parts = chosen.name.toLowerCase().split("."), zipped = parts.at(-1) === "gz";
  if (zipped) parts.pop();
  const format = MARK[parts.at(-1)];
  if (!format) { say(`The suffix of ${chosen.name} is not known. Use .csv, .tsv, .jsonl, .parquet or .txt, maybe with .gz.`, true); return; }
  const kind = format + (zipped ? ".gz" : "");
  let content; // read now: the file may change on the disk
  try {
    content = new Blob([await chosen.arrayBuffer()]);
  } catch {
    say(`${chosen.name} cannot be read. Choose it again.`, true);
    return;
  } finally {
    file.value = ""; // so that the same file, mended, can be chosen again
  }
  if (format === "txt") { load(content, kind); return; }
  try {
    const { columns, rows } = await api.upload(`/v1/project/columns?${new URLSearchParams({ format: kind })}`, content);
    if (looked !== chosen) return; // another one was chosen meanwhile
    const size = (name) => rows.reduce((sum, row) => sum + (row[name] ?? "").length, 0);
    const select = el("select", { "aria-label": "Column with the text" }, ...columns.map((name) => el("option", { value: name }, name)));
    select.value = columns.includes("text") ? "text" : [...columns].sort((a, b) => size(b) - size(a))[0];
    choice.replaceChildren(
      el("label", {}, `Column of ${chosen.name} with the text `, select), " ", el("button", { className: "main", onclick: () => load(content, kind, select.value) }, "Load"),
      el("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "The first rows of the file" }, el("table", {}, el("thead", {}, el("tr", {}, ...columns.map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, ...rows.map((row) => el("tr", {}, ...columns.map((name) => el("td", {}, row[name] ?? ""))))))));
  } catch (error) {
    say(error.message, true);
  }
}

const sample = once(async (domain) => {
  const before = state.texts.length || aspects().length;
  if (!await act(() => api.post("/v1/project/sample", { domain }))) return;
  if (here()) show("sentences");
  if (before) say("The sample is loaded. Undo brings back what was here.");
});

async function clear() {
  if (await act(() => api.remove("/v1/project"))) say("The project is empty. Undo brings back what was here.");
}

export function draw() {
  if (box.childElementCount) return;
  box.append(
    el("h1", {}, "What do your reviews talk about?"),
    el("p", { className: "lead" }, "Name what matters to you and give about five sentences for each. You see at once which sentences mention it, and which words decided."),
    el("div", { className: "cards" },
      el("div", { className: "card" }, el("h2", {}, "Try a sample"), el("p", {}, "Sentences with aspects and examples, ready to look at."),
        el("div", { className: "buttons" }, ...["restaurant", "hotel", "laptop"].map((domain, i) => el("button", { className: i ? "" : "main", id: `sample-${domain}`, onclick: () => sample(domain) }, domain[0].toUpperCase() + domain.slice(1))))),
      el("div", { className: "card" }, el("h2", {}, "Open a file"), el("p", {}, "CSV, TSV, JSONL, Parquet or text, also gzipped. It goes to your own awatt serve and nowhere else."), file, choice),
      el("div", { className: "card" }, el("h2", {}, "Paste reviews"), paste, el("div", { className: "buttons" }, el("button", { className: "main", onclick: () => paste.value.trim() ? load(new Blob([paste.value]), "txt") : paste.focus() }, "Load")))),
    el("div", { className: "below" }, el("label", {}, split, " Split reviews of a file or of pasted text into sentences"),
      el("p", { className: "hint" }, "New reviews replace the loaded ones; aspects and examples stay. A sample replaces everything. Both can be undone."),
      el("button", { id: "start-over", onclick: clear }, "Start over with an empty project")));
}
