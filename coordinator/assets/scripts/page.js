// Shows the advice on one page.
import { api } from "./api.js";
import { el, facts, failure, field, groupLink, pageLink, section, status } from "./dom.js";
import { freshness } from "./refresh.js";
import { duration, rule, similarity, visible, words } from "./format_values.js";

export const title = "Pages";

export async function show(view, parameters, { signal }) {
  const url = parameters.get("url") ?? "";
  const submit = event => {
    event.preventDefault();
    const asked = new FormData(event.target).get("url").trim();
    location.hash = `#/page?url=${encodeURIComponent(asked)}`;
  };
  view.append(section("Look up a page", el("form", { class: "row", submit },
    field("url", "URL of the page", { type: "url", required: true, value: url, placeholder: "https://example.org/page" }),
    el("p", { class: "field short" }, el("button", { class: "main", type: "submit" }, "Look up")))));
  if (!url) return;
  try {
    const advice = await api(`/v1/status?url=${encodeURIComponent(url)}`, { signal });
    const fresh = freshness();
    fresh.at(advice.age_ms);
    view.append(section(visible(advice.url), answer(advice), compare(advice), fresh));
  } catch (error) {
    if (!signal.aborted) view.append(failure(error));
  }
}

/** Links to the explanation of the page and the kept page that its advice names. */
function compare(advice) {
  const other = advice.duplicate_of ?? advice.winner;
  if (!other || other === advice.url) return null;
  const address = `#/explain?a=${encodeURIComponent(advice.url)}&b=${encodeURIComponent(other)}`;
  return el("p", {}, el("a", { href: address }, "Compare the two pages"));
}

/** Shows the advice on a page. */
export function answer(advice) {
  return facts([
    ["Status", status(advice.status)],
    ["Group", groupLink(advice.group)],
    ["Winner of the group", advice.winner && pageLink(advice.winner)],
    ["Duplicate of", advice.duplicate_of && pageLink(advice.duplicate_of)],
    ["Similarity to that page", advice.similarity !== null ? similarity(advice.similarity) : null],
    ["That page precedes by", advice.rule && rule(advice.rule)],
    ["Redirects to", advice.redirect_to && pageLink(advice.redirect_to)],
    ["Why the redirect is unresolved", advice.reason && words(advice.reason)],
    ["Last fetch", advice.fetched_at && visible(advice.fetched_at)],
    ["Age of the replica's answer", advice.age_ms ? duration(advice.age_ms) : null],
    ["Note", advice.note && visible(advice.note)]]);
}
