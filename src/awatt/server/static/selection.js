// Several selected sentences, labelled at once: with buttons, or with the keys that label a single one.

import { byId, counted, el, fill, notify } from "./dom.js";
import { aspects, colour, found, hasScores, labelMany, labelOf, state } from "./state.js";
import { KEYS } from "./detail.js";
import { finishMany, inQueue } from "./queue.js";
import { clearSelection } from "./table.js";

const rows = () => [...state.selected].map((id) => state.rowOf.get(id)).filter((row) => row !== undefined);
const ids = (row) => found(row).map((a) => a.id);

async function apply(idsOf, done) {
  const list = rows();
  if (!hasScores() && list.some((row) => !labelOf(row))) { notify("Not detected yet. Wait a moment."); return false; }
  if (!await labelMany(list, idsOf)) return false;
  notify(`${counted(list.length, "sentence")}: ${done()}. Undo takes it back.`);
  return true;
}

async function finishAll(idsOf, done) {
  const list = rows();
  if (await apply(idsOf, done) && inQueue()) finishMany(list);
}

export const several = () => state.selected.size > 1;
export const acceptAll = () => finishAll(ids, () => "accepted as shown");
export const acceptNone = () => finishAll(() => [], () => "mention none");

// What others have said stays.
export async function removeLabels() {
  const list = rows().filter(labelOf), { revision } = state.project;
  if (!list.length) return;
  if (!await labelMany(list, () => null)) return;
  const kept = list.filter(labelOf).length, removed = list.length - kept;
  notify([removed ? `${counted(removed, "sentence")}: labels removed.` : "No label is removed.", kept ? `${counted(kept, "sentence")} ${kept === 1 ? "keeps its label" : "keep their labels"}, made by others.` : "",
    state.project.revision === revision ? "" : "Undo takes it back."].filter(Boolean).join(" "));
}

// An aspect that all of them have is removed from all; otherwise it is added to all. What else was found is accepted.
export function toggleAll(aspect) {
  const list = rows();
  let all = null; // known when the labels are sent: those before may still be on their way
  apply((row) => {
    all ??= list.every((each) => found(each).includes(aspect));
    return all ? ids(row).filter((id) => id !== aspect.id) : [...new Set([...ids(row), aspect.id])];
  }, () => `${aspect.name} ${all ? "removed" : "added"}`);
}

function button(aspect, list) {
  const having = list.filter((row) => found(row).includes(aspect)).length, column = aspects().indexOf(aspect);
  return el("button", { className: "toggle many", id: `many-${aspect.id}`, colour: colour(column), "aria-pressed": having === list.length ? "true" : having ? "mixed" : "false",
    onclick: (event) => { toggleAll(aspect); if (event.detail) byId("table").focus({ preventScroll: true }); } }, column < KEYS ? el("kbd", {}, String(column + 1)) : el("span", {}), el("span", { className: "name", title: aspect.name }, aspect.name), el("span", { className: "value" }, `${having} of ${list.length}`));
}

// ``find`` is the field in which the name of an aspect is typed, ``listed`` the aspects that match it.
export function drawSelection(box, find, listed) {
  const list = rows();
  fill(box, el("h2", { className: "selected" }, `${counted(list.length, "sentence")} selected`),
    el("div", { className: "buttons" },
      el("button", { className: "main", id: "accept-all", disabled: !aspects().length, onclick: acceptAll }, "Accept all as shown ", el("kbd", {}, "Enter")),
      el("button", { id: "none-all", onclick: acceptNone }, "None ", el("kbd", {}, "0")),
      el("button", { id: "remove-all", disabled: !list.some(labelOf), onclick: removeLabels }, "Remove labels"),
      el("button", { id: "clear-selection", onclick: clearSelection }, "Clear ", el("kbd", {}, "Esc"))),
    el("p", { className: "hint" }, "An aspect is added to all of them, or removed if all have it. Each keeps what else was found in it."),
    find,
    el("div", { className: "toggles" }, ...listed.map((aspect) => button(aspect, list))));
}
