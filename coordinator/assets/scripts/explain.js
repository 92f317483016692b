// Explains why two pages are duplicates or not.
import { api } from "./api.js";
import { el, facts, failure, field, pageLink, section, status, table } from "./dom.js";
import { freshness } from "./refresh.js";
import { number, rule, similarity, visible } from "./format_values.js";
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
    field("a", "URL of one page", { ...url, value: a }), field("b", "URL of the other page", { ...url, value: b }),
    el("p", { class: "field short" }, el("button", { class: "main", type: "submit" }, "Explain")))));
  if (!a || !b) return;
  try {
    const explanation = await api(`/v1/explain?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`, { signal });
    const fresh = freshness();
    fresh.at(explanation.age_ms);
    view.append(
      section(explanation.duplicate ? "The pages are near-duplicates" : "The pages are not near-duplicates",
        el("p", {}, visible(explanation.reason)), measures(explanation), fresh),
      el("div", { class: "columns wide" }, side(explanation.a), side(explanation.b)));
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
    ["Shingles only in the first page", shingles && number(shingles.only_a)],
    ["Shingles only in the second page", shingles && number(shingles.only_b)],
    ["Equal bands", shingles && `${shingles.equal_bands} of ${shingles.bands}`]]),
  table("Criteria for a pair", [
    { head: "Criterion", cell: each => visible(each.what) },
    { head: "In common", cell: each => `${number(each.shared)} of ${number(each.of)}`, number: true },
    { head: "Needed", cell: each => visible(each.needed) },
    { head: "Met", cell: each => (each.met ? "yes" : "no") },
  ], measured.criteria));
}

function side({ advice, compared_url: compared, content, kept_before: kept }) {
  return section(visible(advice.url), answer(advice),
    el("h3", {}, "Content"),
    content ? facts([
      ["Compared page", compared && compared !== advice.url ? pageLink(compared) : null],
      ["Tokens", number(content.tokens)], ["Shingles", content.shingles && number(content.shingles)],
      ["Language", content.language && visible(content.language)],
      ["Has enough text to compare", content.comparable ? "yes" : "no"],
      ["Home partition", number(content.home)],
      ["Searched partitions", content.probed_partitions.join(", ") || "none"]])
      : el("p", { class: "none" }, "The page has no content."),
    kept.length ? el("h3", {}, "Kept pages that precede this page") : null,
    kept.length ? table("Kept pages that precede this page", [
      { head: "Page", cell: each => pageLink(each.url) },
      { head: "Precedes by", cell: each => rule(each.rule) },
      { head: "Similarity", cell: each => similarity(each.similarity), number: true },
      { head: "Duplicate", cell: each => status(each.duplicate ? "duplicate" : "no") },
    ], kept) : null);
}
