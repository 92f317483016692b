// All requests to the server, and the token that they carry where it asks for one.

// In the memory of this page alone: no cookie, no storage.
let token = null;
// The form is asked once for all requests that wait for it.
let asked = null;
// Whoever cancelled the form is not asked again by every refresh.
let declined = false;

/** An answer with an error. */
export class Refused extends Error {
  constructor(message, status, type) {
    super(message);
    this.status = status;
    this.type = type;
  }
}

const at = id => document.getElementById(id);

// Where the server is: this file is one level below, and a proxy may have given both a path.
const base = new URL("..", import.meta.url);

/** The answer of the server as JSON. Throws `Refused`, or an error of the network. */
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
    // Another request may have got a token meanwhile.
    if (sent === token) await askForToken(refused, sent !== null);
  }
}

function askForToken(refused, again) {
  asked ??= new Promise((resolve, reject) => {
    const [dialog, form, input] = [at("token-dialog"), at("token-form"), at("token-input")];
    at("token-reason").textContent = again
      ? "The server does not take this token." : "The server answers only those who have one.";
    input.value = "";
    const end = () => {
      form.onsubmit = dialog.oncancel = at("token-cancel").onclick = null;
      input.value = "";
      asked = null;
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
  return asked;
}

/** Whether the server knows by a token who asks. */
export function hasToken() {
  return token !== null;
}

/** Lets the form come again, for a person who asks for it. */
export function askAgain() {
  declined = false;
}
