// The shares of the aspects by a column of the reviews: bars with intervals, or a line over time. What differs most comes first.

import * as api from "./api.js";
import { counted, el, fill, notify, percent } from "./dom.js";
import { aspects, changed, colour, state } from "./state.js";
import { answers, lineChart, oneStop, showSentences } from "./charts.js";
import { loadColumn } from "./scope.js";

export const byColumn = el("figure", { className: "card span", id: "by-column", hidden: true });
const FIRST = 12; // aspects that are shown at once
let found = null, version = "", all = false; // the response, and what it was requested for; whether all aspects are shown

// The filters that combine with it, as the server takes them.
function conditions() {
  const { where, text, area } = state.filter;
  return [...where.flatMap(({ column, groups, contains }) => (groups ? groups.map((group) => ["where", `${column}=${group}`]) : [["contains", `${column}=${contains}`]])),
    ...text.trim() ? [["text", text.trim()]] : [], ...area ? [["area", area.flat().join(" ")]] : []];
}

export async function loadByColumn() {
  const query = new URLSearchParams([...state.by === null ? [] : [["column", state.by]], ...conditions()]).toString();
  const mine = `${state.project.revision} ${state.reviews} ${query}`;
  if (mine === version) { draw(); return; }
  version = mine;
  try {
    const response = await api.get(`/v1/project/by?${query}`);
    if (version === mine) found = response;
  } catch (error) {
    if (version !== mine) return;
    if (error.status === 422 && state.by !== null) { state.by = null; loadByColumn(); return; } // other reviews were loaded
    [found, version] = [null, ""];
    notify(error.message, true);
  }
  draw();
}

// The sentences of the reviews in a group that mention an aspect.
async function open(aspect, group) {
  const { column } = found.comparison;
  try { if (!await loadColumn(column)) return; } catch (error) { notify(error.message, true); return; }
  showSentences({ aspects: [aspect.id], where: [...state.filter.where.filter((each) => each.column !== column), { column, groups: [group] }] });
}

const interval = (share) => `${percent(share.low)} to ${percent(share.high)}`;
const label = (aspect, group, count, share) => `${aspect.name}, ${group}: ${percent(share.value)}, 95 % interval ${interval(share)}, ${counted(count, "review")}`;

// One group: its share as a bar, and the interval as a line.
function bar(aspect, group, i, share, top) {
  const count = found.comparison.counts[i];
  if (!share) return el("tr", {}, el("th", { scope: "row" }, group), el("td", {}), el("td", { className: "value" }, "–"));
  const track = el("span", { className: "share" }, el("i", {}), el("b", {}));
  track.firstChild.style.setProperty("width", `${100 * share.value / top}%`);
  track.lastChild.style.setProperty("left", `${100 * share.low / top}%`);
  track.lastChild.style.setProperty("width", `${100 * (share.high - share.low) / top}%`);
  const mark = answers(track, `share-${aspect.id}-${i}`, label(aspect, group, count, share), () => open(aspect, group));
  return el("tr", { title: `${counted(count, "review")}; 95 % interval ${interval(share)}` }, el("th", { scope: "row", title: group }, group), el("td", {}, mark), el("td", { className: "value" }, percent(share.value)));
}

function table(each, aspect, top) {
  const { groups } = found.comparison;
  return oneStop(el("table", { className: "panel" }, el("caption", {}, each.name), el("tbody", {}, ...groups.map((group, i) => bar(aspect, group, i, each.shares[i], top)))));
}

// The shares over time as a line.
function line(each, aspect, top) {
  const { groups, counts } = found.comparison, hue = colour(aspects().indexOf(aspect));
  const mark = (node, i) => answers(node, `share-${aspect.id}-${i}`, label(aspect, groups[i], counts[i], each.shares[i]), () => open(aspect, groups[i]));
  return el("div", { className: "panel" }, el("h3", {}, each.name), lineChart(groups, each.shares, hue, top, `${each.name} over time`, mark));
}

function draw() {
  const { comparison, columns } = found ?? {};
  byColumn.hidden = !comparison;
  if (!comparison) { byColumn.replaceChildren(); return; }
  const select = el("select", { id: "column", onchange: () => { state.by = select.value; loadByColumn(); changed("view"); } }, ...columns.map((name) => el("option", { value: name }, name)));
  select.value = comparison.column;
  const known = comparison.aspects.flatMap((each) => { const aspect = aspects().find((a) => a.name === each.name); return aspect ? [[each, aspect]] : []; });
  const shown = all ? known : known.slice(0, FIRST), isTime = comparison.kind === "time";
  const most = Math.max(...known.flatMap(([each]) => each.shares.map((share) => share?.high ?? 0))), top = [0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8].find((each) => each >= most) ?? 1;
  fill(byColumn, el("h2", {}, "By column"), el("p", {}, el("label", {}, "Share of the reviews that mention each aspect, by ", select)),
    el("div", { className: "panels" }, ...shown.map(([each, aspect]) => el("div", { colour: colour(aspects().indexOf(aspect)) }, isTime ? line(each, aspect, top) : table(each, aspect, top)))),
    known.length > FIRST ? el("button", { id: "all-aspects", onclick: () => { all = !all; draw(); } }, all ? "Show fewer" : `Show all ${known.length} aspects`) : null,
    el("p", { className: "hint" }, `What differs most comes first.${isTime ? "" : ` A full bar is ${percent(top)}.`} The ${isTime ? "bands" : "thin lines"} are 95 % intervals; where they do not overlap, the difference is unlikely to be chance.`));
}
