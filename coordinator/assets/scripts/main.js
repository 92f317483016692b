// Shows the view that the part of the address after `#` names, and the state of the service above all views.
import { allowTokenForm, api } from "./api.js";
import { el } from "./dom.js";
import { visible } from "./format_values.js";
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

// True if the latest request failed.
let hasFailed = false;

/** Shows the state that the quality report gives: whether the service accepts pages, and whether all pages are decided. */
function showQuality({ not_ready: why, quiescent }) {
  hasFailed = false;
  if (why) showState("Refuses pages", "bad");
  else showState(quiescent ? "All pages are decided" : "Deciding pages", quiescent ? "good" : "busy");
}

function failed(error) {
  if (error) showState(`No answer: ${visible(error.message)}`, "bad");
  else if (hasFailed) showState("Connected", "good");
  hasFailed = Boolean(error);
}

function showState(text, kind) {
  if (state.textContent !== text) state.textContent = text;
  state.className = kind;
}

async function loadState() {
  try {
    showQuality(await api("/v1/reports/quality"));
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
  if (shown !== overview) loadState();
  shown.show(main, new URLSearchParams(query), { signal: view.signal, showQuality, failed });
}

document.querySelector(".skip").addEventListener("click", event => {
  // A jump to `#main` would change the view, because the part after `#` names the view.
  event.preventDefault();
  main.focus();
});
document.getElementById("token-button").addEventListener("click", event => {
  allowTokenForm();
  event.target.hidden = true;
  show(true);
});
addEventListener("hashchange", () => show(false));
show(true);
api("/v1/cluster").then(
  ({ cluster: name }) => { document.getElementById("cluster-link").hidden = name === null; }, () => {});
