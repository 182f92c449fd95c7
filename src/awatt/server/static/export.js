// Downloads, and code that learns the same without the page.

import * as api from "./api.js";
import { byId, copy, el, emptyState, notify } from "./dom.js";
import { aspects, isGuess, onChange, state } from "./state.js";

const box = byId("view-export");
const title = el("input", { id: "report-title", maxLength: 200, placeholder: "What the reviews say" });
let visible = false;

async function save(event, kind, query) {
  event.preventDefault();
  try { await api.download(`/v1/project/export/${kind}${query}`, `awatt-${kind}`); } catch (error) { notify(error.message, true); }
}

const link = (kind, label, note, query = "") => el("li", {}, el("a", { href: `/v1/project/export/${kind}${query}`, onclick: (event) => save(event, kind, query) }, label), el("small", {}, ` ${note}`));

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`; // for a shell

const inRow = (name) => (/[",[]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name); // of --aspects, as parseNames reads it

// As Python takes them and as the command does, for the aspects that it knows.
function thresholdOptions(known) {
  const common = state.project.threshold;
  if (known.every((a) => a.threshold === null)) return { python: common === null ? "" : `, threshold=${common}`, command: common === null ? "" : ` --threshold ${common}` };
  const named = known.filter((a) => a.threshold !== null || common !== null).map((a) => [a.name, a.threshold ?? common]);
  return { python: `, threshold=${JSON.stringify(Object.fromEntries(named))}`, command: named.map(([name, value]) => ` --threshold ${quoted(`${name}=${value}`)}`).join("") };
}

// Aspects without examples are not in the file: those that are guessed are given by their names.
function codeOptions() {
  const { examples, model } = state.project, inFile = aspects().filter((a) => examples.some((e) => e.aspects.includes(a.id))), guessed = aspects().filter(isGuess);
  const names = guessed.map((a) => a.name), hasFile = examples.length > 0 || !names.length, other = model !== "fast";
  const python = `${state.texts.length ? ", reviews=reviews" : ""}${other ? `, model=${JSON.stringify(model)}` : ""}${thresholdOptions(hasFile ? inFile : guessed).python}`;
  return {
    python: hasFile ? `from_examples("awatt-examples.jsonl"${python})${names.length ? `  # without ${names.join(", ")}: no examples` : ""}` : `from_names(${JSON.stringify(names)}${python})`,
    command: `${hasFile ? " --examples awatt-examples.jsonl" : ""}${names.length ? ` --aspects ${quoted(names.map(inRow).join())}` : ""}${other ? ` --model ${quoted(model)}` : ""}${thresholdOptions([...inFile, ...guessed]).command}`,
  };
}

function code(title, content) {
  return el("div", { className: "card" }, el("h3", {}, title), el("pre", { tabIndex: 0, role: "region", "aria-label": title }, content),
    el("button", { onclick: () => copy(content) }, "Copy"));
}

export function draw() {
  const options = codeOptions();
  if (!aspects().length) {
    box.replaceChildren(el("h1", {}, "Export"), emptyState("There is nothing to export yet: the project has no aspects.", "aspects", "Add aspects"));
    return;
  }
  box.replaceChildren(el("h1", {}, "Export"),
    el("div", { className: "cards" },
      el("div", { className: "card" }, el("h2", {}, "Results"), el("ul", { className: "plain" },
        link("results.csv", "CSV", "a cell that looks like a formula is quoted"), link("results.csv", "CSV for Excel", "the same, marked as UTF-8", "?bom=true"), link("results.jsonl", "JSONL", "one sentence per line"), link("results.parquet", "Parquet", "for pandas, DuckDB, Spark")),
        el("p", { className: "hint" }, "Every sentence with its aspects at the current thresholds, all scores, and the columns of your file. Your labels override what was detected.")),
      el("div", { className: "card" }, el("h2", {}, "Report"), el("p", {}, "One page to share or print: the charts, the comparison by column, typical sentences, and how good the detection was measured to be."),
        el("label", { htmlFor: "report-title" }, "Title"), title, el("p", { className: "buttons" }, el("a", { className: "button", href: "/v1/project/export/report.html", onclick: (event) => save(event, "report.html", `?${new URLSearchParams({ title: title.value })}`) }, "Download the report")),
        el("p", { className: "hint" }, "An HTML file that needs nothing else. Open it and print it to get a PDF.")),
      el("div", { className: "card" }, el("h2", {}, "Examples and detector"), el("ul", { className: "plain" }, link("examples.jsonl", "Examples", "including your labels"), link("detector.zip", "Detector", "a folder with the model; works offline")))),
    el("h2", {}, "Without this page"),
    el("div", { className: "cards two" },
      code("Python", `${state.texts.length ? `import json\n\nfrom awatt import AspectDetector\n\nreviews = [json.loads(line)["text"] for line in open("awatt-results.jsonl", encoding="utf-8")]` : "from awatt import AspectDetector\n"}\ndetector = AspectDetector.${options.python}\nprint(detector.detect("The soup was cold."))`),
      code("Command", `awatt detect reviews.csv${options.command} --out found.jsonl\nawatt report reviews.csv --reviews${options.command} --html report.html`),
      code("API", `curl ${location.origin}/v1/detect \\\n  -H "Authorization: Bearer $AWATT_TOKEN" \\\n  -H "Content-Type: application/json" \\\n  -d '{"texts": ["The soup was cold."]}'`)));
}

export function setVisible(now) {
  visible = now;
  if (now && state.project) draw();
}

onChange((what) => { if (visible && what === "all") draw(); });
