// Reviews in: paste, a file, or the sample.

import * as api from "./api.js";
import { byId, el, number, say } from "./dom.js";
import { act, reload, state } from "./state.js";
import { show } from "./app.js";

const box = byId("view-start");
const MARK = { csv: "csv", tsv: "tsv", jsonl: "jsonl", ndjson: "jsonl", parquet: "parquet", txt: "txt" };

const paste = el("textarea", { rows: 7, id: "paste", placeholder: "One review a line.\nThe soup was cold, but the waiter was lovely.", "aria-label": "Reviews, one a line" });
const split = el("input", { type: "checkbox", checked: true });
const choice = el("div", { className: "choice" });
const file = el("input", { type: "file", id: "file", accept: ".csv,.tsv,.jsonl,.ndjson,.parquet,.txt,.gz", onchange: () => file.files[0] && look(file.files[0]) });

async function load(body, format, column = "text") {
  try {
    say("Reading …");
    const query = new URLSearchParams({ format, column, split: split.checked });
    const done = await api.upload(`/v1/project/reviews?${query}`, body);
    await reload();
    say(`${number(done.reviews)} reviews, ${number(state.texts.length)} sentences.${done.left_out ? ` ${number(done.left_out)} rows could not be read: ${done.faults[0]}` : ""}`, done.left_out > 0);
    choice.replaceChildren();
    show(state.project.aspects.length ? "sentences" : "aspects");
  } catch (error) {
    say(error.message, true);
  }
}

async function look(chosen) {
  const parts = chosen.name.toLowerCase().split("."), zipped = parts.at(-1) === "gz";
  if (zipped) parts.pop();
  const format = MARK[parts.at(-1)];
  if (!format) { say(`The suffix of ${chosen.name} is not known. Use .csv, .tsv, .jsonl, .parquet or .txt, maybe with .gz.`, true); return; }
  const kind = format + (zipped ? ".gz" : "");
  if (format === "txt") { load(chosen, kind); return; }
  try {
    const { columns, rows } = await api.upload(`/v1/project/columns?${new URLSearchParams({ format: kind })}`, chosen);
    const size = (name) => rows.reduce((sum, row) => sum + (row[name] ?? "").length, 0);
    const select = el("select", { "aria-label": "Column with the text" }, ...columns.map((name) => el("option", { value: name }, name)));
    select.value = columns.includes("text") ? "text" : [...columns].sort((a, b) => size(b) - size(a))[0];
    choice.replaceChildren(
      el("label", {}, "Column with the text ", select), " ", el("button", { className: "main", onclick: () => load(chosen, kind, select.value) }, "Load"),
      el("div", { className: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ...columns.map((name) => el("th", {}, name)))),
        el("tbody", {}, ...rows.map((row) => el("tr", {}, ...columns.map((name) => el("td", {}, row[name] ?? ""))))))));
  } catch (error) {
    say(error.message, true);
  }
}

async function sample(domain) {
  if (state.project.aspects.length && !confirm("The sample replaces the reviews, aspects and examples of this project. Go on?")) return;
  if (await act(api.post("/v1/project/sample", { domain }))) show("sentences");
}

async function clear() {
  if (confirm("Remove all reviews, aspects, examples and corrections of this project? This cannot be undone.")) await act(api.remove("/v1/project"));
}

export function draw() {
  if (box.childElementCount) return;
  box.append(
    el("h1", {}, "What do your reviews talk about?"),
    el("p", { className: "lead" }, "Name what matters to you and give about five sentences for each. You see at once which sentences mention it, and which words decided."),
    el("div", { className: "cards" },
      el("div", { className: "card" }, el("h2", {}, "Try the sample"), el("p", {}, "Sentences with aspects and examples, ready to look at."),
        el("div", { className: "buttons" }, ...["restaurant", "hotel", "laptop"].map((domain, i) => el("button", { className: i ? "" : "main", id: `sample-${domain}`, onclick: () => sample(domain) }, domain)))),
      el("div", { className: "card" }, el("h2", {}, "Open a file"), el("p", {}, "CSV, TSV, JSONL, Parquet or text, also gzipped. It stays on this machine."), file, choice),
      el("div", { className: "card" }, el("h2", {}, "Paste"), paste, el("div", { className: "buttons" }, el("button", { className: "main", onclick: () => paste.value.trim() ? load(new Blob([paste.value]), "txt") : paste.focus() }, "Load")))),
    el("p", {}, el("label", {}, split, " Split reviews into sentences")),
    el("p", { className: "hint" }, "New reviews replace the loaded ones; aspects and examples stay. ", el("button", { className: "link", onclick: clear }, "Start over")));
}
