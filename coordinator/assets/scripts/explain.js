// Why two pages are, or are not, duplicates.
import { api } from "./api.js";
import { el, facts, failure, field, pageLink, section, status, table } from "./dom.js";
import { freshness } from "./fresh.js";
import { number, rule, similarity, visible } from "./text.js";
import { answer } from "./page.js";

export const title = "Explain";

export async function show(view, parameters, { signal }) {
  const [a, b] = [parameters.get("a") ?? "", parameters.get("b") ?? ""];
  const submit = event => {
    event.preventDefault();
    const form = new FormData(event.target);
    const of = name => encodeURIComponent(form.get(name).trim());
    location.hash = `#/explain?a=${of("a")}&b=${of("b")}`;
  };
  const url = { type: "url", required: true, placeholder: "https://example.org/page" };
  view.append(section("Explain two pages", el("form", { class: "row", submit },
    field("a", "URL of one page", { ...url, value: a }), field("b", "URL of the other", { ...url, value: b }),
    el("p", { class: "field short" }, el("button", { class: "main", type: "submit" }, "Explain")))));
  if (!a || !b) return;
  try {
    const told = await api(`/v1/explain?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`, { signal });
    const fresh = freshness();
    fresh.at(told.age_ms);
    view.append(
      section(told.duplicate ? "They are near-duplicates" : "They are no near-duplicates",
        el("p", {}, visible(told.reason)), measures(told), fresh),
      el("div", { class: "columns wide" }, side(told.a), side(told.b)));
  } catch (error) {
    if (!signal.aborted) view.append(failure(error));
  }
}

function measures({ policy, measures: measured }) {
  if (!measured) return null;
  const { shingles } = measured;
  const equality = policy.includes("tokens=code") ? "The same tokens (white space ignored)"
    : "The same words (punctuation and case ignored)";
  return el("div", {}, facts([
    ["Similarity", similarity(measured.similarity)],
    [equality, measured.same_content ? "yes" : "no"],
    ["Shingles of the one alone", shingles && number(shingles.only_a)],
    ["Shingles of the other alone", shingles && number(shingles.only_b)],
    ["Equal bands", shingles && `${shingles.equal_bands} of ${shingles.bands}`]]),
  table("What is asked of a pair", [
    { head: "Criterion", cell: each => visible(each.what) },
    { head: "In common", cell: each => `${number(each.shared)} of ${number(each.of)}`, number: true },
    { head: "Needed", cell: each => visible(each.needed) },
    { head: "Met", cell: each => (each.met ? "yes" : "no") },
  ], measured.criteria));
}

function side({ advice, compared_url: compared, content, kept_before: kept }) {
  return section(visible(advice.url), answer(advice),
    el("h3", {}, "Its content"),
    content ? facts([
      ["Compared at", compared && compared !== advice.url ? pageLink(compared) : null],
      ["Tokens", number(content.tokens)], ["Shingles", content.shingles && number(content.shingles)],
      ["Language", content.language && visible(content.language)],
      ["Enough text to be compared", content.comparable ? "yes" : "no"],
      ["Partition", number(content.home)],
      ["Compared in partitions", content.probed_partitions.join(", ") || "none"]])
      : el("p", { class: "none" }, "It has none."),
    kept.length ? el("h3", {}, "Kept pages that come before it") : null,
    kept.length ? table("Kept pages before it", [
      { head: "Page", cell: each => pageLink(each.url) },
      { head: "First by", cell: each => rule(each.rule) },
      { head: "Similarity", cell: each => similarity(each.similarity), number: true },
      { head: "Near", cell: each => status(each.duplicate ? "duplicate" : "no") },
    ], kept) : null);
}
