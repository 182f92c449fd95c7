// A sentence with the words that decided, coloured by aspect.

import { el } from "./dom.js";
import { aspects, colour, found, state } from "./state.js";

// [{start, end, marks: [{aspect, column, weight}]}], the heaviest mark first
export function spans(row) {
  const words = state.words.get(state.ids[row]);
  if (!words) return [];
  const all = aspects(), byPlace = new Map();
  for (const aspect of found(row)) {
    for (const [start, end, weight] of Object.hasOwn(words, aspect.name) ? words[aspect.name] : []) {
      const key = `${start} ${end}`;
      if (!byPlace.has(key)) byPlace.set(key, { start, end, marks: [] });
      byPlace.get(key).marks.push({ aspect, column: all.indexOf(aspect), weight });
    }
  }
  const list = [...byPlace.values()].sort((a, b) => a.start - b.start);
  list.forEach((span) => span.marks.sort((a, b) => b.weight - a.weight));
  return list;
}

export function marked(row) {
  const text = state.texts[row], parts = [];
  let done = 0;
  for (const { start, end, marks } of spans(row)) {
    if (start < done) continue;
    parts.push(text.slice(done, start));
    const mark = el("mark", { title: marks.map((m) => `${m.aspect.name} ${m.weight.toFixed(2)}`).join(", ") }, text.slice(start, end));
    mark.style.setProperty("--c", colour(marks[0].column));
    mark.style.setProperty("--d", colour(marks[marks.length - 1].column));
    mark.style.setProperty("--w", `${Math.round(18 + 42 * Math.min(1, marks[0].weight * 2))}%`);
    parts.push(mark);
    done = end;
  }
  return [...parts, text.slice(done)];
}
