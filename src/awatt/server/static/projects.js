// The name of the project and of the file that is loaded; the list of projects. Another project is another address.

import * as api from "./api.js";
import { byId, el, fill, notify } from "./dom.js";
import { onChange, state } from "./state.js";

const button = byId("project"), dialog = byId("projects");
const address = (name) => `/?${new URLSearchParams({ project: name })}`;

async function create(name, refused) {
  refused.textContent = "";
  try { location.href = address((await api.post("/v1/projects", { name })).name); } catch (error) { refused.textContent = error.message; }
}

async function open() {
  let found;
  try { found = await api.get("/v1/projects"); } catch (error) { notify(error.message, true); return; }
  const name = el("input", { id: "new-project", maxLength: 80, placeholder: "hotels 2024", "aria-label": "Name of a new project" }), refused = el("p", { id: "not-created", role: "alert" });
  fill(dialog, el("h2", { id: "projects-title" }, "Projects"),
    el("ul", { className: "plain" }, ...found.names.map((each) => el("li", {}, el("a", { href: address(each), "aria-current": each === state.project.name ? "page" : null }, each)))),
    found.many ? el("form", { className: "new", onsubmit: (event) => { event.preventDefault(); if (name.value.trim()) create(name.value.trim(), refused); } },
      el("label", { htmlFor: "new-project" }, "New project"), name, el("button", { type: "submit" }, "Create"), refused)
      : el("p", { className: "hint" }, "This server has a single project. Start awatt serve without --project, or with a folder, to have several."),
    el("form", { method: "dialog" }, el("button", {}, "Close")));
  dialog.showModal();
}
button.addEventListener("click", open);

onChange(() => {
  const { project } = state;
  if (!project) return;
  button.hidden = false;
  fill(button, el("span", { className: "project-name" }, project.name), project.file ? el("span", { className: "file-shown" }, ` · ${project.file}`) : null);
  button.title = `${project.file ? `Reviews of ${project.file}. ` : ""}Projects`;
  button.setAttribute("aria-label", `Project ${project.name}${project.file ? `, reviews of ${project.file}` : ""}. Projects`);
  document.title = `${project.file ?? project.name} – awatt`;
});
