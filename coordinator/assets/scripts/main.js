// Which view is shown, by the part of the address after `#`, and what all views share.
import { api, askAgain } from "./api.js";
import { el } from "./dom.js";
import { visible } from "./text.js";
import * as cluster from "./cluster.js";
import * as explain from "./explain.js";
import * as group from "./group.js";
import * as groups from "./groups.js";
import * as load from "./load.js";
import * as overview from "./overview.js";
import * as page from "./page.js";

const VIEWS = { "": overview, page, explain, groups, group, load, cluster };
const [main, state] = [document.getElementById("main"), document.getElementById("state")];
let view = new AbortController();

// The last request had no answer.
let silent = false;

/** What a report of the quality says of the service: whether it takes pages, and whether everything is decided. */
function told({ not_ready: why, quiescent }) {
  silent = false;
  if (why) say("Takes no pages", "bad");
  else say(quiescent ? "Everything is decided" : "Working", quiescent ? "good" : "busy");
}

function failed(error) {
  if (error) say(`No answer: ${visible(error.message)}`, "bad");
  else if (silent) say("Answers", "good");
  silent = Boolean(error);
}

function say(text, kind) {
  if (state.textContent !== text) state.textContent = text;
  state.className = kind;
}

async function askWhetherDecided() {
  try {
    told(await api("/v1/reports/quality"));
  } catch (error) {
    failed(error);
  }
}

function show(isFirst) {
  view.abort();
  view = new AbortController();
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const shown = Object.hasOwn(VIEWS, path) ? VIEWS[path] : overview;
  document.title = `${shown.title} – Doppel`;
  for (const link of document.querySelectorAll("nav a")) {
    const here = link.getAttribute("href") === `#/${path === "group" ? "groups" : path}`;
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  main.replaceChildren(el("h1", {}, shown.title));
  if (!isFirst) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  if (shown !== overview) askWhetherDecided();
  shown.show(main, new URLSearchParams(query), { signal: view.signal, told, failed });
}

document.querySelector(".skip").addEventListener("click", event => {
  // The part after `#` names the view.
  event.preventDefault();
  main.focus();
});
document.getElementById("token-button").addEventListener("click", event => {
  askAgain();
  event.target.hidden = true;
  show(true);
});
addEventListener("hashchange", () => show(false));
show(true);
api("/v1/cluster").then(
  ({ cluster: name }) => { document.getElementById("cluster-link").hidden = name === null; }, () => {});
