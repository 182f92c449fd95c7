// Charts of the results, each of which can be saved.

import * as api from "./api.js";
import { byId, counted, el, emptyState, fill, notify, number, percent, save, svg } from "./dom.js";
import { NONE, aspects, colour, found, onChange, state } from "./state.js";
import { show } from "./app.js";
import { choose } from "./table.js";
import { set } from "./filters.js";

const box = byId("view-overview");
let visible = false, positions = null, positionsVersion = -1;

const ink = () => getComputedStyle(document.body).color;
const paper = () => getComputedStyle(document.querySelector("header")).backgroundColor;
const text = (x, y, content, props = {}) => svg("text", { x, y, "font-size": 13, "font-family": "system-ui, sans-serif", fill: ink(), ...props }, document.createTextNode(content));
const narrow = matchMedia("(max-width: 760px)");
// Width of the names on the left: SVG cannot measure text before it is shown; 13 px letters are about 7.3 px wide.
const room = (names) => Math.min(narrow.matches ? 100 : 150, 16 + 7.3 * Math.max(...names.map((name) => name.length)));
const short = (name, most = 18) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

function bars() {
  const total = Math.max(1, state.texts.length);
  const list = [...aspects().map((a, i) => ({ id: a.id, name: a.name, count: state.counts[i], fill: colour(i) }))].sort((a, b) => b.count - a.count);
  list.push({ id: null, name: "none", count: state.none, fill: NONE });
  const most = Math.max(1, ...list.map((each) => each.count)), tall = 30, wide = narrow.matches ? 340 : 560, left = room(list.map((each) => each.name)), long = wide - left - 100;
  return svg("svg", { viewBox: `0 0 ${wide} ${list.length * tall + 6}`, width: wide, role: "img", "aria-label": `Sentences by aspect: ${list.map((e) => `${e.name} ${e.count}`).join(", ")}` },
    ...list.flatMap((each, i) => [
      text(0, i * tall + 20, short(each.name, left / 7.3 - 1)),
      svg("rect", { x: left, y: i * tall + 6, width: Math.max(1, long * each.count / most), height: 20, rx: 4, fill: each.fill }),
      text(left + 10 + long * each.count / most, i * tall + 20, `${number(each.count)} · ${percent(each.count / total)}`)]));
}

function matrix() {
  const all = aspects(), n = all.length, wide = narrow.matches ? 340 : 560, left = room(all.map((a) => a.name));
  const size = Math.min(44, (wide - left - 50) / n), across = left + n * size + 50, most = Math.max(1, ...state.pairs.flatMap((row, i) => row.filter((_, j) => i !== j)));
  const cells = [], small = Math.max(5, Math.min(13, size - 1)); // many names must not overlap
  all.forEach((a, i) => {
    cells.push(text(left - 10, i * size + size / 2 + 78, short(a.name, left / 7.3 - 1), { "text-anchor": "end", "font-size": small }));
    cells.push(text(0, 0, short(a.name, 10), { "font-size": small, transform: `translate(${left + 2 + i * size + size / 2} 66) rotate(-45)` }));
    all.forEach((b, j) => {
      const count = state.pairs[i][j], share = i === j ? 0 : count / most;
      cells.push(svg("rect", { x: left + j * size, y: 74 + i * size, width: size - 2, height: size - 2, rx: 4, fill: "#4e79a7", "fill-opacity": i === j ? 0.05 : 0.08 + 0.5 * share }));
      if (size >= 26) cells.push(text(left + j * size + size / 2 - 1, 74 + i * size + size / 2 + 4, i === j ? "·" : String(count), { "text-anchor": "middle", "font-size": 12 }));
    });
  });
  const pairs = all.flatMap((a, i) => all.slice(i + 1).map((b, j) => [state.pairs[i][i + 1 + j], `${a.name} and ${b.name}`])).filter(([count]) => count);
  const spoken = pairs.sort(([a], [b]) => b - a).slice(0, 10).map(([count, names]) => `${names} ${count}`).join(", ") || "none";
  return svg("svg", { viewBox: `0 0 ${across} ${80 + n * size}`, width: across, role: "img", "aria-label": `Sentences that mention two aspects: ${spoken}` }, ...cells);
}

const canvas = el("canvas", { role: "application", tabIndex: 0, "aria-describedby": "tip", "aria-label": "A map of the sentences: similar ones are near each other. Arrow keys move between them, Enter opens one." });
const ring = el("i", { className: "ring", hidden: true });
const hasPositions = () => positions && positionsVersion === state.reviews;
const point = (row) => [canvas.width * (0.5 + 0.47 * positions[2 * row]), canvas.height * (0.5 - 0.46 * positions[2 * row + 1])];

function drawMap() {
  const pen = canvas.getContext("2d"), all = aspects();
  [canvas.width, canvas.height] = narrow.matches ? [680, 680] : [1120, 640];
  pen.fillStyle = paper();
  pen.fillRect(0, 0, canvas.width, canvas.height);
  if (!hasPositions()) return;
  const radius = state.texts.length > 3000 ? 3 : state.texts.length > 500 ? 5 : 8;
  for (let row = 0; row < state.texts.length; row++) {
    const here = found(row), [x, y] = point(row);
    const best = here[0] ? all.indexOf(here[0]) : -1;
    pen.globalAlpha = best < 0 ? 0.35 : 0.8;
    pen.fillStyle = best < 0 ? NONE : colour(best);
    pen.beginPath();
    pen.arc(x, y, radius, 0, 7);
    pen.fill();
    if (here.length > 1) { pen.lineWidth = radius / 2; pen.strokeStyle = colour(all.indexOf(here[1])); pen.stroke(); }
  }
  pen.globalAlpha = 1;
}

function nearest(event) {
  const area = canvas.getBoundingClientRect(), x = (event.clientX - area.left) * canvas.width / area.width, y = (event.clientY - area.top) * canvas.height / area.height;
  let best = -1, least = 30 ** 2;
  for (let row = 0; hasPositions() && row < state.texts.length; row++) {
    const [a, b] = point(row), far = (a - x) ** 2 + (b - y) ** 2;
    if (far < least) { least = far; best = row; }
  }
  return best;
}

// The nearest sentence in the direction of an arrow key, within 45 degrees of it.
function nearestTowards(row, key) {
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key], [x, y] = point(row);
  let best = row, least = Infinity;
  for (let other = 0; other < state.texts.length; other++) {
    const [a, b] = point(other), along = (a - x) * dx + (b - y) * dy, aside = Math.abs((a - x) * dy) + Math.abs((b - y) * dx);
    if (along > 0 && aside <= along && along ** 2 + aside ** 2 < least) { least = along ** 2 + aside ** 2; best = other; }
  }
  return best;
}

const tip = el("p", { className: "hint tip", id: "tip", "aria-live": "polite" }, "Point at a dot to read its sentence, or use the arrow keys; click or press Enter to open it.");
let pointed = -1;
function pointAt(row) {
  pointed = row;
  ring.hidden = row < 0;
  if (row < 0) return;
  const [x, y] = point(row);
  ring.style.setProperty("left", `${100 * x / canvas.width}%`);
  ring.style.setProperty("top", `${100 * y / canvas.height}%`);
  tip.textContent = `${state.texts[row]} → ${found(row).map((a) => a.name).join(", ") || "none"}`;
}
function open(row) {
  set({ aspect: null, kind: "all", text: "", only: null });
  show("sentences");
  choose(row);
}
canvas.addEventListener("mousemove", (event) => { const row = nearest(event); if (row >= 0) pointAt(row); });
canvas.addEventListener("click", (event) => { const row = nearest(event); if (row >= 0) open(row); });
canvas.addEventListener("keydown", (event) => {
  if (!hasPositions() || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Enter" && pointed >= 0) open(pointed);
  else if (event.key.startsWith("Arrow")) pointAt(pointed < 0 ? state.chosen ?? 0 : nearestTowards(pointed, event.key));
  else return;
  event.preventDefault();
  event.stopPropagation(); // otherwise Enter would also accept the opened sentence
});

function saveSvg(picture, name) {
  const copy = picture.cloneNode(true), [, , wide, tall] = picture.getAttribute("viewBox").split(" ");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", wide);
  copy.setAttribute("height", tall);
  copy.prepend(svg("rect", { width: "100%", height: "100%", fill: paper() }));
  save(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }), name);
}

async function loadMap() {
  if (positionsVersion === state.reviews) return;
  try {
    const { values, headers } = await api.floats("/v1/project/map");
    if (Number(headers.get("x-awatt-reviews")) !== state.reviews) return; // belongs to other sentences than those shown
    [positions, positionsVersion] = [values, state.reviews];
    pointAt(-1); // the old row belonged to other sentences
    drawMap();
  } catch (error) { notify(error.message, true); }
}

export function draw() {
  const reason = state.texts.length ? ["There are no aspects yet.", "aspects", "Add aspects"] : ["There is nothing to show yet: no reviews are loaded.", "start", "Load reviews"];
  if (!state.texts.length || !aspects().length) { fill(box, el("h1", {}, "Overview"), emptyState(...reason)); return; }
  const counts = bars(), together = matrix(), focused = document.activeElement === canvas; // it is moved into a new card
  const legend = el("p", { className: "legend" }, ...aspects().map((a, i) => el("span", { className: "chip", colour: colour(i) }, a.name)), el("span", { className: "chip none" }, "none"));
  fill(box, el("h1", {}, "Overview"),
    el("p", { className: "lead" }, `${counted(state.texts.length, "sentence")}; at least one aspect was found in ${percent(1 - state.none / Math.max(1, state.texts.length))}.`),
    el("div", { className: "cards two" },
      el("figure", { className: "card" }, el("h2", {}, "Sentences by aspect"), counts, el("button", { id: "save-aspects", onclick: () => saveSvg(counts, "awatt-aspects.svg") }, "Save image")),
      el("figure", { className: "card" }, el("h2", {}, "Mentioned together"), together, el("button", { id: "save-together", onclick: () => saveSvg(together, "awatt-together.svg") }, "Save image")),
      el("figure", { className: "card span" }, el("h2", {}, "Map of the sentences"), legend, el("div", { className: "map" }, canvas, ring), tip, el("button", { id: "save-map", onclick: () => canvas.toBlob((blob) => save(blob, "awatt-map.png")) }, "Save image"))));
  if (focused) canvas.focus({ preventScroll: true });
  drawMap();
}

export function setVisible(now) {
  visible = now;
  if (now && state.project) { draw(); loadMap(); }
}

onChange((what) => { if (visible && what === "all") { draw(); loadMap(); } });
const redraw = () => { if (visible && state.project) draw(); };
narrow.addEventListener("change", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw); // the charts use the colours of the page
