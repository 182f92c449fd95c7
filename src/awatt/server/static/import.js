// Importing examples and labels: a file with the columns text and aspects, as exported or as --examples takes it.

import * as api from "./api.js";
import { counted, el, notify } from "./dom.js";
import { formatOf } from "./formats.js";
import { enqueue, reload, state } from "./state.js";

export async function importLabels(content, format, name) {
  const { revision } = state.project;
  try {
    const { examples } = await enqueue(() => api.upload(`/v1/project/examples?${new URLSearchParams({ format, name })}`, content));
    if (await reload()) notify(state.project.revision === revision ? `Nothing new: all that ${name} has is here already.` : `${counted(examples, "labelled sentence")} imported from ${name}. Undo takes them back.`);
    return true;
  } catch (error) {
    notify(error.message, true);
    return false;
  }
}

const file = el("input", { type: "file", id: "import-file", className: "spoken", "aria-label": "A file with examples or labels", accept: ".csv,.tsv,.jsonl,.ndjson,.json,.parquet,.xlsx,.gz", onchange: async () => {
  const [given] = file.files, format = given && formatOf(given.name);
  file.value = ""; // so that the same file can be chosen again after a correction
  if (!given) return;
  if (!format) { notify(`The suffix of ${given.name} is unknown. Use .csv, .tsv, .jsonl, .json, .xlsx or .parquet.`, true); return; }
  let content;
  try { content = new Blob([await given.arrayBuffer()]); } catch { notify(`${given.name} cannot be read. Choose it again.`, true); return; }
  await importLabels(content, format, given.name);
} });

export const importCard = el("div", { className: "card new", id: "import" }, el("h2", {}, "Import examples or labels"),
  el("p", { className: "hint" }, "A file with the columns text and aspects: examples or results that were exported here, or what --examples takes. Aspects that are missing are added."),
  el("p", { className: "file" }, file, el("label", { className: "button", htmlFor: "import-file" }, "Choose a file")));
