// The overview: how many sentences mention each aspect, which are mentioned together, shares by column, and a map.
// Every mark of a chart lists its sentences, and each chart can be saved.

import { byId, counted, el, emptyState, fill, number, percent, svg } from "./dom.js";
import { NONE, aspects, colour, isGuess, isLearned, onChange, state } from "./state.js";
import { byColumn, loadByColumn } from "./by-column.js";
import { answers, narrow, oneStop, saveButton, saveSvg, short, showSentences, text } from "./charts.js";
import { drawMap, loadMap, mapCard } from "./map.js";
import { scopeBar } from "./scope-bar.js";

const box = byId("view-overview"), filters = scopeBar("in-overview");
const MANY = 12; // aspects from which on each chart has the whole width
const MAX_CELL = 180, MIN_CELL = 24; // pixels, so that a count can be read; the matrix scrolls where there is no room
let visible = false;

// Width of the names on the left: SVG cannot measure text before it is shown; 13 px letters are about 7.3 px wide.
const room = (names) => Math.min(narrow.matches ? 100 : 150, 16 + 7.3 * Math.max(...names.map((name) => name.length)));
const isWide = () => aspects().length > MANY;

// Each chart fills its card: two cards beside each other, or one where there is no room for two.
function cardWidth() {
  const inner = box.clientWidth - 45;
  if (narrow.matches) return 340;
  return Math.round(isWide() ? Math.min(1400, inner - 38) : Math.min(760, (inner > 976 ? (inner - 16) / 2 : inner) - 38));
}
const cellSize = (wide, left, n) => Math.max(MIN_CELL, Math.min(isWide() ? 44 : 64, (wide - left - 50) / n));

function bars() {
  const total = Math.max(1, state.inScope);
  const list = [...aspects().map((a, i) => ({ id: a.id, name: isGuess(a) ? `${a.name}?` : a.name, count: state.counts[i], fill: colour(i), filter: { aspects: [a.id] }, unlearned: !isLearned(a) && !state.counts[i] }))].sort((a, b) => b.count - a.count);
  list.push({ id: "none", name: "none", count: state.none, fill: NONE, filter: { kind: "none" } });
  const most = Math.max(1, ...list.map((each) => each.count)), wide = cardWidth(), left = room(list.map((each) => each.name)), n = aspects().length;
  const tall = isWide() ? 26 : Math.min(56, Math.max(30, (74 + n * cellSize(wide, left, n)) / list.length)), thick = tall * 0.66, middle = tall / 2 + 5, long = wide - left - 100;
  return oneStop(svg("svg", { viewBox: `0 0 ${wide} ${list.length * tall + 6}`, width: wide, role: "group", "aria-label": "Sentences by aspect" },
    ...list.map((each, i) => answers(svg("g", {},
      svg("rect", { x: 0, y: i * tall, width: wide, height: tall, fill: "transparent" }),
      text(0, i * tall + middle, short(each.name, left / 7.3 - 1)),
      svg("rect", { x: left, y: i * tall + (tall - thick) / 2, width: Math.max(1, long * each.count / most), height: thick, rx: 4, fill: each.fill }),
      text(left + 10 + long * each.count / most, i * tall + middle, each.unlearned ? "not learned" : `${number(each.count)} · ${percent(each.count / total)}`)),
      `bar-${each.id}`, `${each.name}: ${counted(each.count, "sentence")}`, () => showSentences(each.filter)))));
}

function matrix() {
  const all = aspects(), n = all.length, wide = cardWidth(), left = room(all.map((a) => a.name));
  const size = cellSize(wide, left, n), broad = Math.max(size, Math.min(MAX_CELL, (wide - left - 50) / n)), across = left + n * broad + 50, most = Math.max(1, ...state.pairs.flatMap((row, i) => row.filter((_, j) => i !== j)));
  const cells = [];
  all.forEach((a, i) => {
    cells.push(text(left - 10, i * size + size / 2 + 78, short(a.name, left / 7.3 - 1), { "text-anchor": "end" }));
    cells.push(text(0, 0, short(a.name, 10), { transform: `translate(${left + 2 + i * broad + broad / 2} 66) rotate(-45)` }));
    all.forEach((b, j) => {
      const count = state.pairs[i][j], share = i === j ? 0 : count / most;
      const cell = svg("g", {}, svg("rect", { x: left + j * broad, y: 74 + i * size, width: broad - 2, height: size - 2, rx: 4, fill: "#4e79a7", "fill-opacity": i === j ? 0.05 : 0.08 + 0.5 * share }),
        text(left + j * broad + broad / 2 - 1, 74 + i * size + size / 2 + 4, i === j ? "·" : number(count), { "text-anchor": "middle", "font-size": size < 30 && count > 999 ? 8 : size < 30 ? 10 : 12 }));
      cells.push(i === j || !count ? cell : answers(cell, `pair-${a.id}-${b.id}`, `${a.name} and ${b.name}: ${counted(count, "sentence")}`, () => showSentences({ aspects: [a.id, b.id] })));
    });
  });
  return oneStop(svg("svg", { viewBox: `0 0 ${across} ${80 + n * size}`, width: across, role: "group", "aria-label": "Sentences that mention two aspects" }, ...cells));
}

export function draw() {
  const reason = state.texts.length ? ["There are no aspects yet.", "aspects", "Add aspects"] : ["There is nothing to show yet: no reviews are loaded.", "start", "Load reviews"];
  if (!state.texts.length || !aspects().length) { fill(box, el("h1", {}, "Overview"), emptyState(...reason)); return; }
  const counts = bars(), together = matrix(), map = mapCard.querySelector("canvas"), focused = document.activeElement === map; // it is moved into a new card
  const whole = isWide() ? " span" : "", part = state.inScope === state.texts.length ? "" : ` of ${number(state.texts.length)}`;
  fill(box, el("h1", {}, "Overview"),
    el("p", { className: "lead" }, `${number(state.inScope)}${part} ${state.texts.length === 1 ? "sentence" : "sentences"}; at least one aspect was found in ${percent(1 - state.none / Math.max(1, state.inScope))}. Click anything to see its sentences.`),
    filters,
    el("div", { className: "cards two" },
      el("figure", { className: `card${whole}` }, el("h2", {}, "Sentences by aspect"), counts, saveButton("save-aspects", () => saveSvg(counts, "awatt-aspects.svg"))),
      el("figure", { className: `card${whole}` }, el("h2", {}, "Mentioned together"), el("div", { className: "sideways" }, together), saveButton("save-together", () => saveSvg(together, "awatt-together.svg"))),
      byColumn, mapCard));
  if (focused) map.focus({ preventScroll: true });
  drawMap();
}

function update() { draw(); loadMap(); loadByColumn(); }

export function setVisible(now) {
  visible = now;
  if (now && state.project) update();
}

onChange((what) => { if (visible && what === "all") update(); });
const redraw = () => { if (visible && state.project) draw(); };
narrow.addEventListener("change", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw); // the charts use the colours of the page
