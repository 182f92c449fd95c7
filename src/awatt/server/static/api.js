// Requests to the server; an error response becomes an Error with the server's message.

import { save } from "./dom.js";

// The key of this sign-in, from the link that opened the page. The cookie alone gives no data: a browser sends it to every
// port of this machine, but only pages of this origin, port included, can read this key.
// The link may also name the view to begin with.
if (/^#(key|view)=/.test(location.hash)) {
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.has("key")) localStorage.setItem("awatt-key", given.get("key"));
  history.replaceState(null, "", `${location.pathname}${location.search}${given.has("view") ? `#${given.get("view")}` : ""}`);
}

// The project that the address names, "/?project=hotels"; without, the one that the server was started with. A read-only
// sign-in sees a single project, whatever the address names.
const named = new URLSearchParams(location.search).get("project");
let wanted = named;
export async function openNamedProject(readOnly) {
  if (readOnly) wanted = null;
  else if (wanted && !project) setProject((await post("/v1/projects", { name: wanted })).project);
}

// Where to sign in again, and return to what is shown.
export const signInAddress = () => `/?sign-in${named ? `&project=${encodeURIComponent(named)}` : ""}${location.hash}`;

let project = null; // the id of the project that the page shows: the server refuses changes meant for another one
export const setProject = (id) => { project = id; };
const WITHOUT_PROJECT = ["/v1/projects", "/v1/session"]; // every other request would get the first project

async function request(method, path, { json, body, raw } = {}) {
  if (wanted && !project && !WITHOUT_PROJECT.includes(path)) throw new Error(`The project “${wanted}” is not open, so nothing can be shown or changed here.`);
  const type = json !== undefined ? { "content-type": "application/json" } : body ? { "content-type": "application/octet-stream" } : {};
  let response;
  for (let attempt = 0; ; attempt++) {
    try {
      response = await fetch(path, { method, headers: { ...type, "x-awatt-key": localStorage.getItem("awatt-key") ?? "", ...(project ? { "x-awatt-project": project } : {}) }, body: json !== undefined ? JSON.stringify(json) : body });
    } catch {
      throw new Error("The server does not respond. Is awatt serve still running?");
    }
    if (response.status !== 503 || attempt >= 4 || (await response.clone().json().catch(() => ({}))).code !== "busy") break;
    await new Promise((resolve) => setTimeout(resolve, 1000 * Number(response.headers.get("retry-after") || 1)));
  }
  if (!response.ok) {
    const content = await response.json().catch(() => ({}));
    const message = response.status === 401 ? "You are signed out, or the server was restarted. Sign in with its token, or open the link that awatt serve printed." : content.error || `The server responded with status ${response.status}.`;
    throw Object.assign(new Error(message), { status: response.status, code: content.code });
  }
  return raw ? response : response.json();
}

export const get = (path) => request("GET", path);
export const post = (path, json = {}) => request("POST", path, { json });
export const put = (path, json) => request("PUT", path, { json });
export const patch = (path, json) => request("PATCH", path, { json });
export const remove = (path) => request("DELETE", path);
export const upload = (path, body) => request("POST", path, { body });

// Saves a file of the server under a name. A plain link would not send the key.
export async function download(path, name) {
  save(await (await request("GET", path, { raw: true })).blob(), name);
}

export async function signOut() {
  await request("DELETE", "/v1/session");
  localStorage.removeItem("awatt-key");
}

export async function floats(path) {
  const response = await request("GET", path, { raw: true });
  return { values: new Float32Array(await response.arrayBuffer()), headers: response.headers };
}
