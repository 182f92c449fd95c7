// A map of the sentences: similar ones are near each other. It zooms and pans, and a lasso selects a part of it.

import { counted, el, fill, notify, number, save } from "./dom.js";
import { NONE, NO_FILTER, aspects, changed, colour, found, setFilter, state } from "./state.js";
import { choose } from "./table.js";
import { ink, narrow, paper, saveButton, showSentences } from "./charts.js";
import { loadPositions, makeScope, mapPositions } from "./scope.js";

const MAX_ZOOM = 60, MAX_CORNERS = 60; // of a lasso: they are part of the address
const FEW = 4000; // points that are drawn as circles; more are squares, which are faster
const HINT = "Point at a dot to read its sentence, or use the arrow keys; click or press Enter to open it. Drag to move the map, + and − zoom; with Shift or Lasso, drag around sentences to select them.";

const canvas = el("canvas", { role: "application", tabIndex: 0, "aria-describedby": "tip", "aria-label": "A map of the sentences: similar ones are near each other. Arrow keys move between them, Enter opens one, plus and minus zoom, 0 shows all." });
const ring = el("i", { className: "ring", hidden: true });
const tip = el("p", { className: "hint tip", id: "tip", "aria-live": "polite" }, HINT);
const legend = el("p", { className: "legend" }), selected = el("p", { className: "selected", "aria-live": "polite" });
const lassoButton = el("button", { id: "lasso", "aria-pressed": "false", title: "Drag around sentences to select them", onclick: () => setLasso(lassoButton.getAttribute("aria-pressed") !== "true") }, "Lasso");
const tools = el("div", { className: "map-tools", role: "group", "aria-label": "Map" },
  el("button", { id: "zoom-in", "aria-label": "Zoom in", onclick: () => zoom(1.6) }, "+"), el("button", { id: "zoom-out", "aria-label": "Zoom out", onclick: () => zoom(1 / 1.6) }, "−"),
  el("button", { id: "zoom-all", onclick: () => moveTo(null) }, "Show all"), lassoButton);
export const mapCard = el("figure", { className: "card span" }, el("h2", {}, "Map of the sentences"), legend, tools, el("div", { className: "map" }, canvas, ring), tip, selected,
  saveButton("save-map", () => canvas.toBlob((blob) => save(blob, "awatt-map.png"))));

let pointed = -1, highlighted = -1, trail = null, scheduled = false; // a row, an aspect's column, the lasso being drawn

// The camera: the middle of what is visible, in the map's coordinates, and how much it is enlarged.
const camera = () => state.camera ?? { x: 0, y: 0, k: 1 };
const ready = () => mapPositions()?.length === 2 * state.texts.length;
const toPixelX = (x, { x: middle, k } = camera()) => canvas.width * (0.5 + 0.47 * k * (x - middle));
const toPixelY = (y, { y: middle, k } = camera()) => canvas.height * (0.5 - 0.46 * k * (y - middle));
const toMap = (px, py, { x, y, k } = camera()) => [x + (px / canvas.width - 0.5) / (0.47 * k), y - (py / canvas.height - 0.5) / (0.46 * k)];
const eventPixel = (event) => { const area = canvas.getBoundingClientRect(); return [(event.clientX - area.left) * canvas.width / area.width, (event.clientY - area.top) * canvas.height / area.height]; };

function moveTo(next) {
  if (next) {
    const k = Math.min(MAX_ZOOM, Math.max(1, next.k)), limit = 1.1 - 1.06 / k; // the map never leaves the view
    next = k === 1 ? null : { k, x: Math.min(limit, Math.max(-limit, next.x)), y: Math.min(limit, Math.max(-limit, next.y)) };
  }
  state.camera = next;
  canvas.classList.toggle("zoomed", Boolean(next));
  schedule();
}

// Zooms so that what is at a pixel stays there.
function zoom(by, px = canvas.width / 2, py = canvas.height / 2) {
  const before = camera(), [x, y] = toMap(px, py), k = Math.min(MAX_ZOOM, Math.max(1, before.k * by));
  moveTo({ k, x: x - (px / canvas.width - 0.5) / (0.47 * k), y: y + (py / canvas.height - 0.5) / (0.46 * k) });
  changed("view");
}

function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => { scheduled = false; paint(); });
}

// The rows that are within the view and match the filters by column and text, sentences without an aspect first: those of aspects lie above them.
function visibleRows() {
  const spots = mapPositions(), scope = makeScope(state.filter), [left, top] = toMap(-9, -9), [right, bottom] = toMap(canvas.width + 9, canvas.height + 9);
  const rows = [[], []];
  for (let row = 0; row < state.texts.length; row++) {
    const x = spots[2 * row], y = spots[2 * row + 1];
    if (x >= left && x <= right && y <= top && y >= bottom && scope.matches(row)) rows[state.first[row] < 0 ? 0 : 1].push(row);
  }
  return [...rows[0], ...rows[1]];
}

function paint() {
  const pen = canvas.getContext("2d"), spots = mapPositions(), view = camera();
  const [wide, tall] = narrow.matches ? [680, 680] : [1120, 640];
  if (canvas.width !== wide || canvas.height !== tall) [canvas.width, canvas.height] = [wide, tall];
  pen.globalAlpha = 1;
  pen.fillStyle = paper();
  pen.fillRect(0, 0, wide, tall);
  if (!ready()) return;
  const rows = visibleRows(), scope = makeScope(state.filter), { area } = state.filter;
  const radius = Math.min(8, Math.max(1.1, 0.2 * Math.sqrt(wide * tall / Math.max(1, rows.length)))), many = rows.length > FEW, strong = many ? 0.55 : 0.8;
  let previous = null;
  for (const row of rows) {
    const x = toPixelX(spots[2 * row], view), y = toPixelY(spots[2 * row + 1], view), best = state.first[row];
    const dim = (area && !scope.isInArea(row)) || (highlighted >= 0 && best !== highlighted && state.second[row] !== highlighted);
    pen.globalAlpha = dim ? 0.07 : best < 0 ? (many ? 0.25 : 0.35) : strong;
    if (best !== previous) pen.fillStyle = best < 0 ? NONE : colour(best);
    previous = best;
    if (many) { pen.fillRect(x - radius, y - radius, 2 * radius, 2 * radius); continue; }
    pen.beginPath();
    pen.arc(x, y, radius, 0, 7);
    pen.fill();
    if (state.second[row] >= 0) { pen.lineWidth = radius / 2; pen.strokeStyle = colour(state.second[row]); pen.stroke(); }
  }
  pen.globalAlpha = 1;
  paintNames(pen, rows, spots, view);
  if (trail) paintTrail(pen, trail.map(([x, y]) => [toPixelX(x), toPixelY(y)]));
  else if (area) paintTrail(pen, area.map(([x, y]) => [toPixelX(x), toPixelY(y)]));
  pointAt(pointed);
}

// The name of each aspect in the middle of its sentences, or beside it: names do not overlap. The most frequent come first.
function paintNames(pen, rows, spots, view) {
  const all = aspects(), sums = all.map(() => [0, 0, 0]), taken = [];
  for (const row of rows) { const sum = sums[state.first[row]]; if (sum) { sum[0]++; sum[1] += spots[2 * row]; sum[2] += spots[2 * row + 1]; } }
  pen.font = `600 ${narrow.matches ? 26 : 17}px system-ui, sans-serif`;
  [pen.textAlign, pen.textBaseline, pen.lineJoin, pen.lineWidth] = ["center", "middle", "round", 5];
  const high = narrow.matches ? 32 : 21;
  for (const [count, i] of sums.map(([count], i) => [count, i]).sort(([a], [b]) => b - a)) {
    if (count < Math.max(1, rows.length / 500)) continue;
    const name = all[i].name.slice(0, 24), half = pen.measureText(name).width / 2 + 4, [n, x, y] = sums[i];
    const px = Math.min(canvas.width - half, Math.max(half, toPixelX(x / n, view))), middle = toPixelY(y / n, view);
    const free = (py) => py > high && py < canvas.height - high && taken.every(([a, b, w]) => Math.abs(a - px) > half + w || Math.abs(b - py) > high);
    const py = [0, 1, -1, 2, -2, 3, -3, 4, -4, 6, -6, 8, -8, 10, -10].map((step) => middle + step * high).find(free);
    if (py === undefined) continue;
    taken.push([px, py, half]);
    [pen.globalAlpha, pen.strokeStyle, pen.fillStyle] = [0.75, paper(), ink()];
    pen.strokeText(name, px, py);
    pen.globalAlpha = 1;
    pen.fillText(name, px, py);
  }
  canvas.dataset.names = String(taken.length); // how many there was room for
}

function paintTrail(pen, points) {
  pen.beginPath();
  points.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.closePath();
  [pen.lineWidth, pen.strokeStyle, pen.fillStyle, pen.globalAlpha] = [3, ink(), ink(), 0.06];
  pen.fill();
  pen.globalAlpha = 0.8;
  pen.stroke();
  pen.globalAlpha = 1;
}

function nearest(event) {
  const [x, y] = eventPixel(event), spots = mapPositions(), view = camera();
  if (!ready()) return -1;
  const scope = makeScope(state.filter);
  let best = -1, least = 30 ** 2;
  for (let row = 0; row < state.texts.length; row++) {
    if (!scope.matches(row)) continue; // it is not drawn
    const far = (toPixelX(spots[2 * row], view) - x) ** 2 + (toPixelY(spots[2 * row + 1], view) - y) ** 2;
    if (far < least) { least = far; best = row; }
  }
  return best;
}

// The nearest sentence in the direction of an arrow key, within 45 degrees of it.
function nearestTowards(row, key) {
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key], spots = mapPositions(), view = camera(), scope = makeScope(state.filter);
  const x = toPixelX(spots[2 * row], view), y = toPixelY(spots[2 * row + 1], view);
  let best = row, least = Infinity;
  for (let other = 0; other < state.texts.length; other++) {
    if (!scope.matches(other)) continue; // it is not drawn
    const a = toPixelX(spots[2 * other], view), b = toPixelY(spots[2 * other + 1], view), along = (a - x) * dx + (b - y) * dy, aside = Math.abs((a - x) * dy) + Math.abs((b - y) * dx);
    if (along > 0 && aside <= along && along ** 2 + aside ** 2 < least) { least = along ** 2 + aside ** 2; best = other; }
  }
  return best;
}

function pointAt(row) {
  pointed = row < state.texts.length ? row : -1;
  const spots = mapPositions(), x = ready() && pointed >= 0 ? toPixelX(spots[2 * row]) : -1, y = ready() && pointed >= 0 ? toPixelY(spots[2 * row + 1]) : -1;
  ring.hidden = !(x >= 0 && x <= canvas.width && y >= 0 && y <= canvas.height);
  if (ring.hidden) return;
  ring.style.setProperty("left", `${100 * x / canvas.width}%`);
  ring.style.setProperty("top", `${100 * y / canvas.height}%`);
  tip.textContent = `${state.texts[row]} → ${found(row).map((a) => a.name).join(", ") || "none"}`;
}

function step(key) {
  const { matches } = makeScope(state.filter), isDrawn = (row) => row !== null && matches(row);
  if (pointed >= 0) pointAt(nearestTowards(pointed, key));
  else pointAt(isDrawn(state.chosen) ? state.chosen : state.texts.findIndex((_, row) => matches(row)));
  if (pointed < 0 || !ring.hidden) return;
  const spots = mapPositions();
  moveTo({ ...camera(), x: spots[2 * pointed], y: spots[2 * pointed + 1] }); // it is outside the view
}

function open(row) {
  showSentences({ where: [], text: "", area: null });
  choose(row);
}

function setLasso(on) {
  lassoButton.setAttribute("aria-pressed", String(on));
  canvas.classList.toggle("lasso", on);
}

// Dragging moves the map or draws the lasso; two fingers zoom.
const pointers = new Map();
let dragged = false, drawing = false;
canvas.addEventListener("pointerdown", (event) => {
  if (event.button || !ready()) return;
  pointers.set(event.pointerId, eventPixel(event));
  [dragged, drawing] = [false, event.shiftKey || lassoButton.getAttribute("aria-pressed") === "true"];
  trail = drawing ? [toMap(...eventPixel(event))] : null;
});
canvas.addEventListener("pointermove", (event) => {
  const before = pointers.get(event.pointerId), now = eventPixel(event);
  if (!before) { const row = nearest(event); if (row >= 0) pointAt(row); return; }
  if (!dragged && Math.hypot(now[0] - before[0], now[1] - before[1]) < 6) return;
  if (!dragged) canvas.setPointerCapture(event.pointerId);
  dragged = true;
  if (pointers.size === 2) {
    const other = [...pointers].find(([id]) => id !== event.pointerId)[1], far = (a) => Math.hypot(a[0] - other[0], a[1] - other[1]);
    zoom(far(now) / Math.max(1, far(before)), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
  } else if (drawing) trail.push(toMap(...now));
  else { const [ax, ay] = toMap(...before), [bx, by] = toMap(...now), { x, y, k } = camera(); moveTo({ k, x: x + ax - bx, y: y + ay - by }); }
  pointers.set(event.pointerId, now);
  schedule();
});
function release(event) {
  if (!pointers.delete(event.pointerId)) return;
  const area = trail;
  trail = null;
  if (dragged && area?.length > 2 && event.type === "pointerup") select(area);
  else if (dragged) { schedule(); changed("view"); }
}
canvas.addEventListener("pointerup", release);
canvas.addEventListener("pointercancel", release);
canvas.addEventListener("click", (event) => { if (dragged) { dragged = false; return; } const row = nearest(event); if (row >= 0) open(row); });
canvas.addEventListener("wheel", (event) => {
  if (document.activeElement !== canvas && !event.ctrlKey && !event.metaKey) return; // otherwise the page scrolls
  event.preventDefault();
  zoom(1.0015 ** -event.deltaY, ...eventPixel(event));
}, { passive: false });
canvas.addEventListener("keydown", (event) => {
  if (!ready() || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Enter" && pointed >= 0) open(pointed);
  else if (event.key.startsWith("Arrow")) step(event.key);
  else if (event.key === "+" || event.key === "=") zoom(1.6);
  else if (event.key === "-") zoom(1 / 1.6);
  else if (event.key === "0") { moveTo(null); changed("view"); }
  else if (event.key === "Escape" && state.filter.area) setFilter({ area: null });
  else return;
  event.preventDefault();
  event.stopPropagation(); // otherwise Enter would also accept the opened sentence
});

function select(area) {
  const every = Math.max(1, Math.ceil(area.length / MAX_CORNERS)), rounded = area.filter((_, i) => i % every === 0).map((corner) => corner.map((value) => Number(value.toFixed(3))));
  setLasso(false);
  const { where, text } = state.filter;
  setFilter({ ...NO_FILTER, where, text, area: rounded });
  if (!state.rows.length) { setFilter({ area: null }); notify("There is no sentence in this area."); }
}

// What the lasso selected, in numbers.
function drawSelected() {
  if (!state.filter.area || !ready()) { fill(selected); return; }
  const counts = aspects().map((aspect, i) => [state.rows.filter((row) => state.first[row] === i || state.second[row] === i).length, aspect.name]);
  const most = counts.filter(([count]) => count).sort(([a], [b]) => b - a).slice(0, 5).map(([count, name]) => `${name} ${number(count)}`).join(", ");
  fill(selected, el("strong", {}, `${counted(state.rows.length, "sentence")} in the area`), most ? `: ${most}. ` : ". ",
    el("button", { id: "see-area", className: "main", onclick: () => showSentences({}) }, "See them"), " ", el("button", { id: "clear-area", onclick: () => { setFilter({ area: null }); canvas.focus({ preventScroll: true }); } }, "Clear"));
}

function drawLegend() {
  const entry = (name, id, column, filter, props) => { const light = (on) => { highlighted = on ? column : -1; schedule(); };
    return el("button", { className: "chip pressable", id, title: `Show the sentences: ${name}`, onclick: () => { highlighted = -1; showSentences(filter); }, onmouseenter: () => light(true), onmouseleave: () => light(false), onfocus: () => light(true), onblur: () => light(false), ...props }, name); };
  fill(legend, ...aspects().map((a, i) => entry(a.name, `legend-${a.id}`, i, { aspects: [a.id] }, { colour: colour(i) })), entry("none", "legend-none", -1, { kind: "none" }, { colour: NONE }));
}

export function drawMap() {
  canvas.classList.toggle("zoomed", Boolean(state.camera));
  drawLegend();
  drawSelected();
  paint();
}

export async function loadMap() {
  if (ready()) return;
  try {
    if (!await loadPositions()) return;
    pointAt(-1); // the old row belonged to other sentences
    drawMap();
  } catch (error) { notify(error.message, true); }
}
