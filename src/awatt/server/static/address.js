// The address holds the view and its filters, so that a link to it can be sent and Back leads to the previous one.

import { aspects, setFilter, state, NO_FILTER } from "./state.js";
import { loadColumn, loadPositions } from "./scope.js";

const KINDS = ["none", "uncertain", "labelled", "noted"];
const PASSING = ["text", "row", "map"]; // what changes with every key or movement is no step back

// "#sentences?aspect=food&c.city=Porto": what the page shows now. Lists that only this page knows are left out.
export function describe(view = document.body.dataset.view) {
  const { filter, camera, by } = state, found = new URLSearchParams();
  for (const id of filter.aspects) found.append("aspect", aspects().find((a) => a.id === id)?.name ?? "");
  if (filter.kind !== "all") found.set("kind", filter.kind);
  if (filter.text.trim()) found.set("text", filter.text.trim());
  for (const { column, groups, contains } of filter.where) groups ? groups.forEach((group) => found.append(`c.${column}`, group)) : found.set(`t.${column}`, contains);
  if (filter.area) found.set("area", filter.area.flat().join(" "));
  if (view === "overview" && by !== null) found.set("by", by);
  if (view === "overview" && camera) found.set("map", [camera.x, camera.y, camera.k].map((value) => value.toFixed(3)).join(" "));
  if (view === "sentences" && state.chosen && state.ids[state.chosen] !== undefined) found.set("row", state.ids[state.chosen]);
  return `#${view}${found.size ? `?${found}` : ""}`;
}

export function parse(hash = location.hash) {
  const [view, query] = hash.slice(1).split(/\?(.*)/s);
  return { view, given: query === undefined ? null : new URLSearchParams(query) };
}

const numbers = (text) => (text ?? "").split(" ").map(Number).filter(Number.isFinite);
const pairs = (list) => Array.from({ length: list.length >> 1 }, (_, i) => [list[2 * i], list[2 * i + 1]]);

// Shows what an address describes; what does not exist here is left out.
export async function apply(given, isCurrent = () => true) {
  const reviews = state.reviews, where = [];
  for (const name of new Set(given.keys())) {
    const column = name.slice(2);
    if (name.startsWith("c.")) where.push({ column, groups: given.getAll(name) });
    if (name.startsWith("t.")) where.push({ column, contains: given.get(name) });
  }
  const area = pairs(numbers(given.get("area"))), [x, y, k] = numbers(given.get("map")), by = given.get("by"), row = state.rowOf.get(Number(given.get("row")));
  const loaded = await Promise.all(where.map(({ column }) => loadColumn(column).catch(() => false)));
  const placed = area.length > 2 && await loadPositions().catch(() => false);
  if (reviews !== state.reviews || !isCurrent()) return; // other reviews were loaded meanwhile, or another address followed
  const names = given.getAll("aspect");
  Object.assign(state, { by, camera: k > 1 ? { x, y, k } : null });
  setFilter({ ...NO_FILTER, aspects: aspects().filter((a) => names.includes(a.name)).map((a) => a.id), kind: KINDS.includes(given.get("kind")) ? given.get("kind") : "all",
    text: given.get("text") ?? "", where: where.filter((_, i) => loaded[i]), area: placed ? area : null });
  if (row !== undefined && state.rows.includes(row)) state.chosen = row;
}

const MINE = { awatt: true }; // marks the addresses that this page wrote
const lasting = (hash) => { const { view, given } = parse(hash); PASSING.forEach((name) => given?.delete(name)); return `${view}?${given ?? ""}`; };

// Called after every change. A new view or filter is a step that Back takes back.
const PAUSE = 200; // milliseconds: browsers allow 20 writes per second
let paused = false, timer = null;
const replace = () => { timer = null; if (!paused && describe() !== location.hash) history.replaceState(MINE, "", describe()); };
export function write() {
  if (paused || !document.body.dataset.ready || !document.body.dataset.view) return;
  const next = describe();
  if (lasting(next) !== lasting(location.hash)) history.pushState(MINE, "", next);
  else if (next !== location.hash) timer ??= setTimeout(replace, PAUSE);
}

// Several changes that are one step.
export function atOnce(call) {
  paused = true;
  try { call(); } finally { paused = false; }
  write();
}

// Follows an address without writing it again. While what it needs is being loaded, Back may lead to another one.
export async function follow(show) {
  const { view, given } = parse(), exact = given !== null || history.state?.awatt, followed = location.hash; // a plain link to a view keeps the filters
  const isCurrent = () => location.hash === followed;
  paused = true;
  try {
    if (exact) await apply(given ?? new URLSearchParams(), isCurrent);
    if (!isCurrent()) return;
    show(view);
  } finally {
    if (isCurrent()) paused = false; // otherwise by whoever follows the other one
  }
  replace();
}
