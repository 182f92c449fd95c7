// The whole review around the chosen sentence, and its other columns.

import * as api from "./api.js";
import { counted, el } from "./dom.js";
import { changed, state } from "./state.js";
import { choose } from "./table.js";

let opened = !matchMedia("(max-width: 760px)").matches, known = new Map(), version = -1; // columns by the review's number; null while requested

async function load(number, reviews) {
  known.set(number, null);
  try {
    const { fields } = await api.get(`/v1/project/reviews/${number}`);
    if (reviews === state.reviews) known.set(number, fields);
  } catch {
    known.delete(number); // requested again with the next change
    return;
  }
  if (state.chosen !== null && state.review[state.chosen] === number) changed("review");
}

// The rows of the review: its sentences stand together.
function around(row) {
  let first = row, last = row;
  while (first > 0 && state.review[first - 1] === state.review[row]) first--;
  while (state.review[last + 1] === state.review[row]) last++;
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

const shown = (value) => (value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value));

export function review(row) {
  if (version !== state.reviews) [known, version] = [new Map(), state.reviews];
  const number = state.review[row], rows = around(row), fields = known.get(number);
  if (opened && fields === undefined) load(number, state.reviews);
  const columns = Object.entries(fields ?? {}).filter(([, value]) => shown(value) !== "");
  const sentence = (each) => (each === row ? el("mark", { className: "here", "aria-current": "true" }, state.texts[each])
    : el("button", { className: "other", id: `other-${each}`, title: "Choose this sentence", onclick: () => choose(each) }, state.texts[each]));
  return [el("details", { className: "review", open: opened, ontoggle: (event) => { if (opened !== event.target.open) { opened = event.target.open; changed("review"); } } },
    el("summary", { id: "whole-review" }, `Review ${number}`, el("small", {}, ` ${counted(rows.length, "sentence")}${columns.length ? `, ${counted(columns.length, "column")}` : ""}`)),
    el("div", { className: "around" }, ...rows.flatMap((each, i) => [i ? " " : "", sentence(each)])),
    columns.length ? el("dl", { className: "columns" }, ...columns.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, shown(value))])) : null)];
}
