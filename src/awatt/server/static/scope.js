// Which sentences count: those whose reviews have the chosen values in their columns, with a text, in an area of the map.

import * as api from "./api.js";
import { state } from "./state.js";

let columns = new Map(), names = [], version = -1; // of the reviews that are shown: by name, and the names with their kinds
let positions = null; // of the sentences on the map: pairs from -1 to 1

export function forgetScope() {
  [columns, names, version, positions] = [new Map(), [], -1, null];
}

export const columnNames = () => names;
export const columnOf = (name) => columns.get(name);
export const mapPositions = () => positions;

// The names of all columns; with a name also the groups of that column. Returns whether they belong to what is shown.
export async function loadColumn(name = null) {
  if (name === null ? version === state.reviews : columns.has(name)) return true;
  const found = await api.get(`/v1/project/values${name === null ? "" : `?${new URLSearchParams({ column: name })}`}`);
  if (found.reviews !== state.reviews) return false;
  [names, version] = [found.columns, found.reviews];
  if (found.values) columns.set(name, found.values);
  return true;
}

export async function loadPositions() {
  if (positions) return true;
  const { values, headers } = await api.floats("/v1/project/map");
  if (Number(headers.get("x-awatt-reviews")) !== state.reviews) return false; // belongs to other sentences than those shown
  positions = values;
  return true;
}

// Whether a point lies within a polygon: a line from it crosses the edges an odd number of times.
function contains(area, x, y) {
  let inside = false;
  for (let i = 0, j = area.length - 1; i < area.length; j = i++) {
    const [ax, ay] = area[i], [bx, by] = area[j];
    if ((ay > y) !== (by > y) && x < (bx - ax) * (y - ay) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

// Two tests of a sentence's row. A column that is not loaded yet matches nothing.
export function makeScope({ where, text: part, area }) {
  const tests = where.map(({ column, groups, contains: text }) => {
    const found = columns.get(column), wanted = text?.trim().toLowerCase();
    const allowed = found?.groups.map((group) => (groups ? groups.includes(group) : group.toLowerCase().includes(wanted)));
    return (review) => Boolean(allowed?.[found.places[review - 1]]);
  });
  const typed = part.trim().toLowerCase();
  return {
    matches: (row) => tests.every((test) => test(state.review[row])) && (!typed || state.texts[row].toLowerCase().includes(typed)),
    isInArea: (row) => !area || Boolean(positions && contains(area, positions[2 * row], positions[2 * row + 1])),
  };
}
