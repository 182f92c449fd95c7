// Starts the page: views, keys, undo, theme, and changes made in other tabs.

import * as api from "./api.js";
import * as address from "./address.js";
import { byId, counted, el, fill, notify, number } from "./dom.js";
import { act, enqueue, isSaving, onChange, reload, state } from "./state.js";
import * as aspectsView from "./aspects.js";
import * as exportView from "./export.js";
import * as overview from "./overview.js";
import "./projects.js";
import "./share.js";
import * as start from "./start.js";
import * as table from "./table.js";
import { drawDetail } from "./detail.js";
import { nextList } from "./queue.js";
import { showChanged } from "./filters.js";

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
    drawDetail();
  }
  address.write();
}

tabs.forEach((tab, i) => {
  tab.addEventListener("click", () => show(tab.id.slice(4)));
  tab.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by) { const next = tabs[(i + by + tabs.length) % tabs.length]; show(next.id.slice(4)); next.focus(); event.stopPropagation(); }
  });
});

addEventListener("popstate", async () => {
  const { view } = address.parse();
  if (!VIEWS.includes(view) || !state.project) return;
  await address.follow(show);
  byId(`tab-${view}`).focus();
});

async function undoOrRedo(kind, opposite, done) {
  let title = null;
  if (!state.project) return;
  const request = async () => {
    if (!state.project[kind]) return state.project;
    const project = await api.post(`/v1/project/${kind}`, { revision: state.project.revision }); // refused if others have changed it since
    title = project[opposite]; // the action that was just undone can now be redone, and vice versa
    return project;
  };
  if (await act(request) && title) notify(`${done}: ${title}.`);
}
const undo = () => undoOrRedo("undo", "redo", "Undone"), redo = () => undoOrRedo("redo", "undo", "Redone");
byId("undo").addEventListener("click", undo);
byId("redo").addEventListener("click", redo);
byId("help").addEventListener("click", () => byId("keys").showModal());
let signedOut = false;
byId("sign-out").addEventListener("click", async () => {
  try { await enqueue(api.signOut); } catch (error) { notify(error.message, true); return; }
  signedOut = true;
  document.body.textContent = "You are signed out. Open a new link: awatt serve prints one when it starts.";
});

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
  const typing = event.target.matches("input:not([type=range]):not([type=checkbox]), textarea, select") || document.querySelector("dialog[open]");
  if (typing) { if (event.key === "Escape" && event.target.closest("#search, #detail")) byId("table").focus(); return; }
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") { event.shiftKey ? redo() : undo(); event.preventDefault(); return; }
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "a" && event.target.id === "table") { table.selectAll(); event.preventDefault(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "?") { byId("keys").showModal(); return; }
  if (document.body.dataset.view !== "sentences") return;
  const scrolls = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown"].includes(event.key);
  if (event.target.matches("button, input, a, summary") && (scrolls || ["Enter", " "].includes(event.key))) return;
  if (event.target.matches(".full") && scrolls) return;
  if (event.key === "/") byId("search").focus();
  else if (event.key.toLowerCase() === "n") nextList();
  else if (!table.key(event)) return;
  event.preventDefault();
});

onChange((what) => { if (what === "all" || what === "view") address.write(); });
onChange((what) => {
  const { project } = state;
  if (!project || what === "view") return;
  const focused = document.activeElement;
  byId("undo").disabled = !project.undo;
  byId("undo").title = project.undo ? `Undo: ${project.undo} (Ctrl+Z)` : "Nothing to undo";
  byId("redo").disabled = !project.redo;
  byId("redo").title = project.redo ? `Redo: ${project.redo} (Ctrl+Shift+Z)` : "Nothing to redo";
  const other = { undo: "redo", redo: "undo" }[focused.id];
  if (other && focused.disabled) byId(other).focus(); // a disabled button loses the focus
  const listed = state.rows.length === state.texts.length ? counted(state.texts.length, "sentence") : [`${number(state.rows.length)} of ${number(state.texts.length)}`, el("span", { className: "roomy" }, state.texts.length === 1 ? " sentence" : " sentences")];
  const status = byId("status"), count = state.changes?.ids.size;
  const again = count === undefined ? [] : [" · ", el("span", { className: "roomy" }, "detected again, "), count ? el("button", { id: "see-changed", title: "Show these sentences", onclick: () => { show("sentences"); showChanged(); } }, `${number(count)} changed`) : "0 changed"];
  if (state.busy) fill(status, "Detecting …");
  else if (!state.texts.length) fill(status);
  else fill(status, listed, el("span", { className: "wide" }, ...again));
});

function setReadOnly(readOnly) {
  state.readOnly = readOnly;
  document.body.classList.toggle("reading", readOnly);
  byId("read-only").hidden = !readOnly;
}

// Another tab or process may have changed the project, or an earlier request may have failed.
let lost = false; // the status with which the server was lost: 0 if it does not respond, 401 if it was restarted
// Said at once, not with the next click, and until it responds again.
function notifyLost(error) {
  const status = error.status ?? 0, link = (href, label) => el("a", { href }, label);
  if (lost === status && !byId("message").hidden) return;
  lost = status;
  notify(error.message, true, { stays: true, action: status === 401 ? link(api.signInAddress(), "Sign in") : status ? link("/", "Open the first project") : null });
}
function notifyFound() {
  if (lost !== false) notify("The server responds again.");
  lost = false;
}

let refreshing = true; // until the page has started
async function refresh() {
  if (document.hidden || state.busy || signedOut || refreshing) return;
  refreshing = true;
  try { await (state.project ? compareVersions() : boot()); } finally { refreshing = false; }
}

async function compareVersions() {
  try {
    const found = await api.get("/v1/project/version"), { project, reviews, learned } = state;
    if (isSaving() || state.busy) return; // what the user has just changed comes with its own response
    if (found.project !== project.project || found.revision > project.revision || reviews !== project.reviews || learned !== project.learned) await reload();
    notifyFound();
  } catch (error) {
    if (!error.status || error.status === 401) notifyLost(error);
  }
}
setInterval(refresh, 4000);
addEventListener("focus", refresh);
document.addEventListener("visibilitychange", refresh);

async function boot() {
  try {
    setReadOnly((await api.get("/v1/session")).read_only);
    await api.openNamedProject(state.readOnly);
  } catch (error) { notifyLost(error); return; }
  if (await reload()) notifyFound();
  const { view, given } = address.parse();
  if (given && state.texts.length) await address.apply(given);
  if (state.project) show(state.texts.length ? (VIEWS.includes(view) ? view : "sentences") : "start");
  if (state.project) history.replaceState({ awatt: true }, "", address.describe());
  document.body.dataset.ready = "yes";
}
await boot().finally(() => { refreshing = false; });
