// Sends all requests to the server, with a token if the server requires one.

// The token stays in the memory of this page: never in a cookie, never in storage.
let token = null;
// The promise of the open token form. All requests that need a token wait for the same form.
let pendingToken = null;
// True after the person cancelled the form. Refreshes then do not open the form again.
let declined = false;

/** An error answer of the server. */
export class Refused extends Error {
  constructor(message, status, type) {
    super(message);
    this.status = status;
    this.type = type;
  }
}

const at = id => document.getElementById(id);

// Base URL of the server. This file is one level below the base. A proxy may put both under a path.
const base = new URL("..", import.meta.url);

/** Sends a request and returns the JSON answer. Throws `Refused` for an error answer, or a network error. */
export async function api(path, { method = "GET", body, signal } = {}) {
  for (;;) {
    const sent = token;
    const headers = { accept: "application/json" };
    if (sent !== null) headers.authorization = `Bearer ${sent}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    const response = await fetch(new URL(path.slice(1), base), {
      method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store", credentials: "same-origin", redirect: "error",
    });
    if (response.ok) return response.json();
    const problem = await response.json().catch(() => ({}));
    const refused = new Refused(problem.detail ?? `status ${response.status}`, response.status, problem.type);
    if (response.status !== 401 || declined) throw refused;
    // Another request may have received a new token meanwhile. Then this request uses that token.
    if (sent === token) await askForToken(refused, sent !== null);
  }
}

function askForToken(refused, again) {
  pendingToken ??= new Promise((resolve, reject) => {
    const [dialog, form, input] = [at("token-dialog"), at("token-form"), at("token-input")];
    at("token-reason").textContent = again
      ? "The server does not accept this token." : "The server requires a token.";
    input.value = "";
    const end = () => {
      form.onsubmit = dialog.oncancel = at("token-cancel").onclick = null;
      input.value = "";
      pendingToken = null;
      dialog.close();
    };
    form.onsubmit = event => {
      event.preventDefault();
      token = input.value.trim();
      at("token-button").hidden = true;
      end();
      resolve();
    };
    at("token-cancel").onclick = dialog.oncancel = event => {
      event.preventDefault();
      declined = true;
      at("token-button").hidden = false;
      end();
      reject(refused);
    };
    dialog.showModal();
    input.focus();
  });
  return pendingToken;
}

/** Returns true if the page sends a token, which names the person to the server. */
export function hasToken() {
  return token !== null;
}

/** Allows the token form to open again, because the person asked for it. */
export function allowTokenForm() {
  declined = false;
}
