// The filters that the charts follow, each with a button that removes it, and a way to add one by a column of the reviews.

import { byId, counted, el, fill, notify, number } from "./dom.js";
import { columnNames, columnOf, loadColumn } from "./scope.js";
import { onChange, setFilter as set, state } from "./state.js";

const bars = []; // the same filters are shown in several views
let edited = null; // the column whose values are offered

const without = (column) => state.filter.where.filter((each) => each.column !== column);
const chosen = (column) => state.filter.where.find((each) => each.column === column);

async function setWhere(column, condition) {
  try { if (!await loadColumn(column)) return; } catch (error) { notify(error.message, true); return; }
  set({ where: condition ? [...without(column), { column, ...condition }] : without(column) });
}

function toggleGroup(column, group) {
  const groups = chosen(column)?.groups ?? [];
  const left = groups.includes(group) ? groups.filter((each) => each !== group) : [...groups, group];
  setWhere(column, left.length ? { groups: left } : null);
}

// The values of the column before disappear at once: a click must not reach them while the new ones are on their way.
async function edit(column) {
  edited = column || null;
  drawAll();
  if (!column || columnOf(column)) return;
  try { if (!await loadColumn(column)) return; } catch (error) { notify(error.message, true); return; }
  if (edited === column) drawAll();
}

const chip = (label, id, remove) => el("button", { className: "chip active", id, title: "Remove this filter", "aria-label": `Remove the filter ${label}`, onclick: remove }, `${label} ✕`);
const describe = ({ column, groups, contains }) => `${column}: ${groups ? groups.join(" or ") : `contains “${contains}”`}`;

function editor(prefix) {
  const column = columnOf(edited);
  if (column.kind === "free") {
    const field = el("input", { type: "search", id: `${prefix}-contains`, placeholder: "contains …", "aria-label": `${edited} contains`, onchange: () => setWhere(edited, field.value.trim() ? { contains: field.value } : null) });
    field.value = chosen(edited)?.contains ?? "";
    return field;
  }
  const counts = new Array(column.groups.length).fill(0);
  for (const place of column.places) if (place >= 0) counts[place]++;
  return el("div", { className: "groups", role: "group", "aria-label": `Values of ${edited}` }, ...column.groups.map((group, i) => el("button", { className: "chip pressable", id: `${prefix}-group-${i}`, title: counted(counts[i], "review"),
    "aria-pressed": String(Boolean(chosen(edited)?.groups?.includes(group))), onclick: () => toggleGroup(edited, group) }, `${group} `, el("small", {}, number(counts[i])))));
}

function draw({ box, prefix, isBesideSearch }) {
  const names = columnNames(), { where, text, area } = state.filter, typed = isBesideSearch ? "" : text.trim();
  box.hidden = !names.length && !where.length && !typed && !area;
  const select = el("select", { id: `${prefix}-column`, "aria-label": "Filter by a column", onchange: () => edit(select.value) },
    el("option", { value: "" }, "Filter by column …"), ...names.map(({ name }) => el("option", { value: name }, name)));
  select.value = edited ?? "";
  fill(box, ...where.map((each, i) => chip(describe(each), `${prefix}-where-${i}`, () => { setWhere(each.column, null); byId(`${prefix}-column`)?.focus(); })),
    typed ? chip(`“${typed}”`, `${prefix}-text`, () => set({ text: "" })) : null,
    area ? chip("area of the map", `${prefix}-area`, () => set({ area: null })) : null,
    names.length ? select : null, edited && columnOf(edited) ? editor(prefix) : null);
}
const drawAll = () => bars.forEach(draw);

// Beside the search field, which shows the text itself, only the others are listed.
export function scopeBar(prefix, isBesideSearch = false) {
  const box = el("div", { className: "scope", role: "group", "aria-label": "Filters" });
  bars.push({ box, prefix, isBesideSearch });
  return box;
}

onChange(async (what) => {
  if (what !== "all" || !state.project) return;
  if (edited && !columnOf(edited)) edited = null; // other reviews were loaded
  drawAll();
  if (columnNames().length || !state.texts.length) return;
  try { if (await loadColumn()) drawAll(); } catch { /* requested again with the next change */ }
});
