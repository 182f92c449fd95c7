// Suggested aspects: what do these reviews talk about? Accept, rename, merge or dismiss them.

import * as api from "./api.js";
import { byId, counted, el, fill, notify } from "./dom.js";
import { show } from "./app.js";
import { NO_FILTER, act, aspects, setFilter, state } from "./state.js";

export const suggested = el("section", { id: "suggested", "aria-labelledby": "suggested-title" });
const MOST_SENTENCES = 5;
let made = [], version = "", wanted = false, loading = false; // what the server suggests, and for which state of the project
const renamed = new Map(), merged = new Map(), unticked = new Set(); // by the name under which something was suggested

// The sentences with one of the words; the server counts them the same way.
function sentencesWith(words) {
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const found = new RegExp(`(?<!\\p{L})(?:${escaped.join("|")})(?!\\p{L})`, "iu");
  return state.ids.filter((_, row) => found.test(state.texts[row]));
}

// The suggestions with what the user has merged: {key, name, words, count, sentences, groups}
function groups() {
  const root = (name) => (merged.has(name) ? root(merged.get(name)) : name), byRoot = new Map();
  for (const each of made) {
    const key = root(each.name), group = byRoot.get(key);
    if (!group) byRoot.set(key, { ...each, key, groups: [each.name] });
    else Object.assign(group, { words: [...group.words, ...each.words], sentences: [...group.sentences, ...each.sentences], groups: [...group.groups, each.name] });
  }
  return [...byRoot.values()].map((group) => ({ ...group, name: renamed.get(group.key) ?? group.key, sentences: group.sentences.slice(0, MOST_SENTENCES),
    count: group.groups.length > 1 ? sentencesWith(group.words).length : group.count })).sort((a, b) => b.count - a.count);
}

export async function loadSuggestions() {
  if (!state.texts.length || (aspects().length && !wanted)) { drawSuggestions(); return; }
  const now = `${state.project.learned} ${state.project.reviews} ${state.project.revision}`;
  if (now === version) return;
  version = now;
  loading = true;
  drawSuggestions();
  try {
    const found = await api.get("/v1/project/suggested-aspects");
    if (version !== now) return; // newer ones have been requested
    if (found.reviews === state.reviews) made = found.suggestions;
  } catch (error) {
    if (version !== now) return;
    version = ""; // requested again with the next change
    notify(error.message, true);
  }
  loading = false;
  drawSuggestions();
}

function look(group) {
  show("sentences");
  setFilter({ ...NO_FILTER, only: new Set(sentencesWith(group.words)), title: group.name });
}

// A suggestion disappears at once, and comes back if the server refuses.
async function settle(group, request) {
  wanted = true; // go on suggesting, although there are aspects now
  made = made.filter((each) => !group.groups.includes(each.name));
  drawSuggestions();
  const done = await act(request);
  if (!done) { version = ""; loadSuggestions(); }
  return done;
}

async function accept(group) {
  const examples = group.sentences.filter((id) => !unticked.has(id)).map((id) => state.texts[state.rowOf.get(id)]);
  const name = byId(`suggestion-${group.key}`).value.trim() || group.name;
  if (await settle(group, () => api.post("/v1/project/suggested-aspects", { name, examples, groups: group.groups }))) notify(`Added ${name}, with ${counted(examples.length, "example")}. Undo takes it back.`);
}

const dismiss = (group) => settle(group, () => api.post("/v1/project/suggested-aspects/dismiss", { groups: group.groups }));

function card(group, all) {
  const rename = (event) => { renamed.set(group.key, event.target.value.trim() || group.key); };
  const field = el("input", { id: `suggestion-${group.key}`, className: "title", defaultValue: group.name, maxLength: 100, "aria-label": `Name of the suggestion ${group.key}`, onchange: rename });
  const merge = el("select", { id: `merge-${group.key}`, "aria-label": `Merge ${group.name} with`, onchange: () => { merged.set(merge.value, group.key); drawSuggestions(); } },
    el("option", { value: "" }, "Merge with …"), ...all.filter((other) => other.key !== group.key).map((other) => el("option", { value: other.key }, other.name)));
  const sentence = (id) => el("li", {}, el("label", {}, el("input", { type: "checkbox", checked: !unticked.has(id), onchange: (event) => { event.target.checked ? unticked.delete(id) : unticked.add(id); } }), " ", state.texts[state.rowOf.get(id)] ?? ""));
  return el("article", { className: "card suggestion", "aria-label": `Suggestion ${group.name}` },
    el("div", { className: "head" }, field, el("button", { className: "link", title: "Show these sentences", onclick: () => look(group) }, counted(group.count, "sentence"))),
    el("p", { className: "hint" }, group.words.slice(0, 8).join(", ")),
    el("ul", {}, ...group.sentences.map(sentence)),
    el("div", { className: "buttons" }, el("button", { className: "main", onclick: () => accept(group) }, "Accept"), el("button", { onclick: () => dismiss(group) }, "Dismiss"), merge));
}

export function drawSuggestions() {
  suggested.hidden = !state.texts.length;
  const title = el("h2", { id: "suggested-title" }, "What do these reviews talk about?"), all = groups();
  if (aspects().length && !wanted) {
    fill(suggested, title, el("button", { id: "suggest-aspects", onclick: () => { wanted = true; loadSuggestions(); } }, "Suggest more aspects"));
    return;
  }
  fill(suggested, title, el("p", { className: "hint" }, loading && !made.length ? "Looking for words that stand out …" : all.length ? "Words that stand out, grouped by meaning. Accept what matters to you: the ticked sentences become examples." : "No further words stand out."),
    el("div", { className: "cards", id: "suggestions" }, ...all.map((group) => card(group, all))));
}
