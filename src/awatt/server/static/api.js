// Requests to the server; a refusal becomes an Error with the server's own words.

let project = null; // which one the page shows: the server refuses changes that are meant for another
export const setProject = (id) => { project = id; };

async function ask(method, path, { json, body, raw } = {}) {
  const headers = json !== undefined ? { "content-type": "application/json" } : body ? { "content-type": "application/octet-stream" } : {};
  let answer;
  for (let attempt = 0; ; attempt++) {
    try {
      answer = await fetch(path, { method, headers: project ? { ...headers, "x-awatt-project": project } : headers, body: json !== undefined ? JSON.stringify(json) : body });
    } catch {
      throw new Error("The server does not answer. Is awatt serve still running?");
    }
    if (answer.status !== 503 || attempt >= 4) break;
    await new Promise((resolve) => setTimeout(resolve, 1000 * Number(answer.headers.get("retry-after") || 1)));
  }
  if (!answer.ok) {
    const found = await answer.json().catch(() => ({}));
    const message = answer.status === 401 ? "The server was started again. Open the new link that it printed." : found.error || `The server answered ${answer.status}.`;
    throw Object.assign(new Error(message), { status: answer.status });
  }
  return raw ? answer : answer.json();
}

export const get = (path) => ask("GET", path);
export const post = (path, json = {}) => ask("POST", path, { json });
export const put = (path, json) => ask("PUT", path, { json });
export const patch = (path, json) => ask("PATCH", path, { json });
export const remove = (path) => ask("DELETE", path);
export const upload = (path, body) => ask("POST", path, { body });

export async function floats(path) {
  const answer = await ask("GET", path, { raw: true });
  return { values: new Float32Array(await answer.arrayBuffer()), headers: answer.headers };
}
