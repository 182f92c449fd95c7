// Creates elements. Text is always set as textContent: a review is never treated as HTML.

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "colour") node.style.setProperty("--c", value);
    else if (name in node && !name.includes("-") && name !== "list" && name !== "role") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// Replaces the children of a node. A control with the focus keeps it, and a field keeps what is being typed and where, if
// the new children include one with the same id.
export let filling = false;
export function fill(node, ...children) {
  const focused = node.contains(document.activeElement) ? document.activeElement : null;
  const fields = [...node.querySelectorAll("input:not([type]), textarea")].filter((field) => field.id && (field.value !== field.defaultValue || field === focused));
  const kept = fields.map(({ id, value, defaultValue, selectionStart, selectionEnd }) => ({ id, typed: value !== defaultValue && value, selectionStart, selectionEnd }));
  filling = true; // removing a field fires its blur event
  node.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  filling = false;
  for (const { id, typed, selectionStart, selectionEnd } of kept) {
    const field = byId(id);
    if (field && typed !== false) field.value = typed;
    field?.setSelectionRange(selectionStart, selectionEnd);
  }
  if (focused?.id) byId(focused.id)?.focus({ preventScroll: true });
}

// Shown where there is nothing to show yet: the reason, and a link to the view where that can be changed.
export const emptyState = (reason, view, label) => el("div", { className: "empty" }, el("p", {}, reason), el("a", { className: "button", href: `#${view}` }, label));

export function svg(tag, props = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) node.setAttribute(name, value);
  node.append(...children.flat());
  return node;
}

export const byId = (id) => document.getElementById(id);

// A message that disappears after a while, unless it is to stay; an action is a link shown after it.
let hideTimer;
export function notify(message, bad = false, { stays = false, action = null } = {}) {
  const box = byId("message");
  box.replaceChildren(message, ...action ? [" ", action] : []);
  box.hidden = !message;
  box.classList.toggle("bad", bad);
  clearTimeout(hideTimer);
  if (message && !stays) hideTimer = setTimeout(() => { box.hidden = true; }, bad ? 12000 : 4000);
}

// Shown from the beginning of a long action until its end; null hides it. Without a total, how long it takes is unknown.
export function progress(text, done = 0, total = 0) {
  const bar = byId("progress").querySelector("progress");
  byId("progress").hidden = text === null;
  byId("progress-text").textContent = text ?? "";
  if (total) Object.assign(bar, { max: total, value: done });
  else bar.removeAttribute("value");
}

export const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)}\u00a0%`;
export const number = (count) => count.toLocaleString("en");
export const counted = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`; // "1 review", "2 reviews"

export function save(blob, name) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export async function copy(text) {
  try { await navigator.clipboard.writeText(text); notify("Copied."); } catch { notify("Select the text and copy it."); }
}
