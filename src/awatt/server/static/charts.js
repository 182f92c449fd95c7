// What the charts share: texts, marks that answer a click or a key, and saving as a picture.

import { el, percent, save, svg } from "./dom.js";
import { NO_FILTER, setFilter, state } from "./state.js";
import { atOnce } from "./address.js";
import { show } from "./app.js";

export const narrow = matchMedia("(max-width: 760px)");
export const ink = () => getComputedStyle(document.body).color;
export const paper = () => getComputedStyle(document.querySelector("header")).backgroundColor;
export const text = (x, y, content, props = {}) => svg("text", { x, y, "font-size": 13, "font-family": "system-ui, sans-serif", fill: ink(), ...props }, document.createTextNode(content));
export const short = (name, most = 18) => (name.length > most ? `${name.slice(0, Math.max(1, most - 1))}…` : name);

// Lists the sentences that match; what the charts follow (columns, text, area) stays as it is, unless it is given.
export function showSentences(filter) {
  const { where, text, area } = state.filter;
  atOnce(() => {
    setFilter({ ...NO_FILTER, where, text, area, ...filter });
    show("sentences");
  });
}

// Makes a part of a chart a button. Parts of one chart are one stop of the Tab key; arrow keys move between them.
export function answers(node, id, label, action) {
  for (const [name, value] of Object.entries({ role: "button", tabindex: -1, id, "aria-label": label, class: `${node.getAttribute("class") ?? ""} mark`.trim() })) node.setAttribute(name, value);
  node.addEventListener("click", action);
  node.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { action(event); event.preventDefault(); event.stopPropagation(); } });
  if (node instanceof SVGElement) node.prepend(svg("title", {}, document.createTextNode(label)));
  return node;
}

const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const middle = (node) => { const area = node.getBoundingClientRect(); return [area.x + area.width / 2, area.y + area.height / 2]; };

// The nearest part in the direction of an arrow key.
function towards(from, all, [dx, dy]) {
  const [x, y] = middle(from);
  let best = null, least = Infinity;
  for (const node of all) {
    const [a, b] = middle(node), along = (a - x) * dx + (b - y) * dy, aside = Math.abs((a - x) * dy) + Math.abs((b - y) * dx);
    if (along > 1 && along + 3 * aside < least) [best, least] = [node, along + 3 * aside];
  }
  return best;
}

// ``inLine``: to the previous or next one, as on a line over time, wherever it lies.
export function oneStop(chart, inLine = false) {
  const marks = [...chart.querySelectorAll(".mark")];
  if (!marks.length) return chart;
  const current = (node) => marks.forEach((each) => each.setAttribute("tabindex", each === node ? 0 : -1));
  current(marks[0]);
  chart.addEventListener("focusin", (event) => { const node = event.target.closest(".mark"); if (node) current(node); });
  chart.addEventListener("keydown", (event) => {
    const from = event.target.closest?.(".mark"), direction = from && KEYS[event.key];
    const next = direction && (inLine ? marks[marks.indexOf(from) + direction[0] + direction[1]] : towards(from, marks, direction));
    if (!next) return;
    next.focus();
    event.preventDefault();
    event.stopPropagation();
  });
  return chart;
}

// Shares as a line in a band of their intervals; it is broken where there is none. ``mark`` makes a point a button.
const WIDE = 360, TALL = 150, LEFT = 40, BOTTOM = 24, LINE = 14;
export function lineChart(names, shares, hue, top, label, mark = (node) => node) {
  const x = (i) => LEFT + (WIDE - LEFT - 12) * (names.length > 1 ? i / (names.length - 1) : 0.5), y = (value) => 8 + (TALL - BOTTOM - 8) * (1 - value / top);
  const runs = [];
  shares.forEach((share, i) => { if (share) i && shares[i - 1] ? runs.at(-1).push(i) : runs.push([i]); });
  const path = (points) => points.map(([a, b], i) => `${i ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join("");
  const band = (run) => path([...run.map((i) => [x(i), y(shares[i].low)]), ...run.toReversed().map((i) => [x(i), y(shares[i].high)])]) + "Z";
  const ticks = names.length < 2 ? [0] : [0, names.length > 4 ? names.length >> 1 : 0, names.length - 1];
  const dot = (i, r, fill) => svg("circle", { cx: x(i), cy: y(shares[i].value), r, fill });
  const lower = names.some((name) => name.includes("\n")) ? LINE : 0; // room for a second line
  return oneStop(svg("svg", { viewBox: `0 0 ${WIDE} ${TALL + lower}`, width: WIDE, role: "group", "aria-label": label },
    ...[0, top / 2, top].flatMap((value) => [svg("line", { x1: LEFT, x2: WIDE - 12, y1: y(value), y2: y(value), stroke: ink(), "stroke-opacity": 0.15 }), text(LEFT - 6, y(value) + 4, percent(value), { "text-anchor": "end", "font-size": 11 })]),
    ...[...new Set(ticks)].flatMap((i) => names[i].split("\n").map((part, line) => text(x(i), TALL - 6 + line * LINE, part, { "text-anchor": i === 0 ? "start" : i === names.length - 1 ? "end" : "middle", "font-size": 11 }))),
    ...runs.flatMap((run) => [svg("path", { d: band(run), fill: hue, "fill-opacity": 0.22, stroke: "none" }), svg("path", { d: path(run.map((i) => [x(i), y(shares[i].value)])), fill: "none", stroke: hue, "stroke-width": 2 })]),
    ...runs.flat().map((i) => mark(svg("g", {}, dot(i, 9, "transparent"), dot(i, 3.5, hue)), i))), true);
}

export function saveSvg(picture, name) {
  const copy = picture.cloneNode(true), [, , wide, tall] = picture.getAttribute("viewBox").split(" ");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", wide);
  copy.setAttribute("height", tall);
  copy.prepend(svg("rect", { width: "100%", height: "100%", fill: paper() }));
  save(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }), name);
}

export const saveButton = (id, action) => el("button", { id, onclick: action }, "Save image");
