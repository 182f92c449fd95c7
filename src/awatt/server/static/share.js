// Links to the view that is shown: for those who are signed in, and a read-only one for everybody else.

import * as api from "./api.js";
import { byId, copy, el, fill, notify } from "./dom.js";
import { describe } from "./address.js";

const dialog = byId("sharing");
const isLocal = ["127.0.0.1", "localhost", "[::1]"].includes(location.hostname);

const linked = (id, label, link) => el("div", { className: "linked" }, el("input", { id, readOnly: true, value: link, "aria-label": label, onfocus: (event) => event.target.select() }), el("button", { onclick: () => copy(link) }, "Copy"));

async function makeReadOnly(event) {
  const place = event.target.parentElement;
  try {
    const { path } = await api.post("/v1/link", { read_only: true, view: describe().slice(1) });
    fill(place, linked("read-only-link", "Read-only link", location.origin + path));
    byId("read-only-link").focus();
  } catch (error) { notify(error.message, true); }
}

byId("share").addEventListener("click", () => {
  fill(dialog, el("h2", { id: "sharing-title" }, "Share this view"),
    el("p", {}, "The address holds the view and its filters. For those who are signed in here:"), linked("view-link", "Link to this view", location.origin + location.pathname + location.search + describe()),
    el("p", {}, "Anyone with a read-only link can see the project but not change it. It works for a week, or until awatt serve stops."), el("div", {}, el("button", { id: "make-read-only", className: "main", onclick: makeReadOnly }, "Make a read-only link")),
    isLocal ? el("p", { className: "hint" }, "This server can be reached from this machine only. Start it with --public-url to let others in, or share a report (under Export).") : null,
    el("form", { method: "dialog", className: "buttons" }, el("button", { autofocus: true }, "Close")));
  dialog.showModal();
});
