// Starts the page: views, keys, undo, theme, and changes made in other tabs.

import * as api from "./api.js";
import { byId, counted, el, fill, notify, number } from "./dom.js";
import { act, onChange, reload, state } from "./state.js";
import * as aspectsView from "./aspects.js";
import * as exportView from "./export.js";
import * as overview from "./overview.js";
import * as start from "./start.js";
import * as table from "./table.js";
import "./filters.js";

const VIEWS = ["start", "sentences", "aspects", "overview", "export"];
const tabs = [...document.querySelectorAll("[role=tab]")];

export function show(view) {
  for (const name of VIEWS) {
    byId(`view-${name}`).hidden = name !== view;
    byId(`tab-${name}`).setAttribute("aria-selected", String(name === view));
    byId(`tab-${name}`).tabIndex = name === view ? 0 : -1;
  }
  document.body.dataset.view = view;
  aspectsView.setVisible(view === "aspects");
  overview.setVisible(view === "overview");
  exportView.setVisible(view === "export");
  if (view === "start") start.draw();
  if (view === "sentences") {
    if (state.chosen === null && state.rows.length) table.choose(state.rows[0], false);
    table.draw();
    table.drawDetail();
  }
  history.replaceState(null, "", `#${view}`);
}

tabs.forEach((tab, i) => {
  tab.addEventListener("click", () => show(tab.id.slice(4)));
  tab.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by) { const next = tabs[(i + by + tabs.length) % tabs.length]; show(next.id.slice(4)); next.focus(); event.stopPropagation(); }
  });
});

addEventListener("hashchange", () => { const view = location.hash.slice(1); if (VIEWS.includes(view)) { show(view); byId(`tab-${view}`).focus(); } });

async function undoOrRedo(kind, opposite, done) {
  let title = null;
  if (!state.project) return;
  const request = async () => {
    if (!state.project[kind]) return state.project;
    const project = await api.post(`/v1/project/${kind}`);
    title = project[opposite]; // the action that was just undone can now be redone, and vice versa
    return project;
  };
  if (await act(request) && title) notify(`${done}: ${title}.`);
}
const undo = () => undoOrRedo("undo", "redo", "Undone"), redo = () => undoOrRedo("redo", "undo", "Redone");
byId("undo").addEventListener("click", undo);
byId("redo").addEventListener("click", redo);
byId("help").addEventListener("click", () => byId("keys").showModal());

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("awatt-theme", theme);
}
const savedTheme = localStorage.getItem("awatt-theme");
if (savedTheme) setTheme(savedTheme);
byId("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  setTheme(dark ? "light" : "dark");
  if (document.body.dataset.view === "overview") overview.draw();
});

addEventListener("keydown", (event) => {
  const typing = event.target.matches("input:not([type=range]):not([type=checkbox]), textarea, select") || byId("keys").open;
  if (typing) { if (event.key === "Escape" && event.target.id === "search") byId("table").focus(); return; }
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") { event.shiftKey ? redo() : undo(); event.preventDefault(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "?") { byId("keys").showModal(); return; }
  if (document.body.dataset.view !== "sentences") return;
  const scrolls = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown"].includes(event.key);
  if (event.target.matches("button, input, a, summary") && (scrolls || ["Enter", " "].includes(event.key))) return;
  if (event.target.matches(".full") && scrolls) return;
  if (event.key === "/") byId("search").focus();
  else if (event.key.toLowerCase() === "n") table.labelNext();
  else if (!table.key(event)) return;
  event.preventDefault();
});

onChange(() => {
  const { project } = state;
  if (!project) return;
  const focused = document.activeElement;
  byId("undo").disabled = !project.undo;
  byId("undo").title = project.undo ? `Undo: ${project.undo} (Ctrl+Z)` : "Nothing to undo";
  byId("redo").disabled = !project.redo;
  byId("redo").title = project.redo ? `Redo: ${project.redo} (Ctrl+Shift+Z)` : "Nothing to redo";
  const other = { undo: "redo", redo: "undo" }[focused.id];
  if (other && focused.disabled) byId(other).focus(); // a disabled button loses the focus
  const shown = state.rows.length === state.texts.length ? "" : `${number(state.rows.length)} of `;
  const status = byId("status"), again = state.changedCount === null ? "" : ` · detected again, ${number(state.changedCount)} changed`;
  if (state.busy) fill(status, "Detecting …");
  else if (!state.texts.length) fill(status);
  else fill(status, `${shown}${counted(state.texts.length, "sentence")}`, el("span", { className: "wide" }, again));
});

// Another tab or process may have changed the project, or an earlier request may have failed.
async function refresh() {
  if (document.hidden || state.busy) return;
  if (!state.project) { await boot(); return; }
  const { project, reviews, learned } = state;
  try {
    const found = await api.get("/v1/project/version");
    if (found.project !== project.project || found.revision > project.revision || reviews !== project.reviews || learned !== project.learned) await reload();
  } catch { /* reported with the next action */ }
}
setInterval(refresh, 4000);
addEventListener("focus", refresh);
document.addEventListener("visibilitychange", refresh);

async function boot() {
  await reload();
  const wanted = location.hash.slice(1);
  if (state.project) show(state.texts.length ? (VIEWS.includes(wanted) ? wanted : "sentences") : "start");
  document.body.dataset.ready = "yes";
}
await boot();
