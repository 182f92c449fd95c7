// Requests to the server; an error response becomes an Error with the server's message.

let project = null; // the id of the project that the page shows: the server refuses changes meant for another one
export const setProject = (id) => { project = id; };

async function request(method, path, { json, body, raw } = {}) {
  const headers = json !== undefined ? { "content-type": "application/json" } : body ? { "content-type": "application/octet-stream" } : {};
  let response;
  for (let attempt = 0; ; attempt++) {
    try {
      response = await fetch(path, { method, headers: project ? { ...headers, "x-awatt-project": project } : headers, body: json !== undefined ? JSON.stringify(json) : body });
    } catch {
      throw new Error("The server does not respond. Is awatt serve still running?");
    }
    if (response.status !== 503 || attempt >= 4) break;
    await new Promise((resolve) => setTimeout(resolve, 1000 * Number(response.headers.get("retry-after") || 1)));
  }
  if (!response.ok) {
    const content = await response.json().catch(() => ({}));
    const message = response.status === 401 ? "The server was restarted. Open the new link that it printed." : content.error || `The server responded with status ${response.status}.`;
    throw Object.assign(new Error(message), { status: response.status });
  }
  return raw ? response : response.json();
}

export const get = (path) => request("GET", path);
export const post = (path, json = {}) => request("POST", path, { json });
export const put = (path, json) => request("PUT", path, { json });
export const patch = (path, json) => request("PATCH", path, { json });
export const remove = (path) => request("DELETE", path);
export const upload = (path, body) => request("POST", path, { body });

export async function floats(path) {
  const response = await request("GET", path, { raw: true });
  return { values: new Float32Array(await response.arrayBuffer()), headers: response.headers };
}
