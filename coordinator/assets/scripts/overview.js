// Shows the collection at a glance: pages by status, the backlog, and the rates.
import { api } from "./api.js";
import { el, facts, section } from "./dom.js";
import { freshness, repeat } from "./refresh.js";
import { count, duration, number, percent, rate, visible } from "./format_values.js";

export const title = "Overview";

export function show(view, _, { signal, showQuality, failed }) {
  const [fresh, counted] = [freshness(), freshness()];
  const [notices, figures, pages, work, times, totals] = ["div", "div", "div", "div", "div", "div"].map(tag => el(tag));
  const trouble = el("div", { role: "status" });
  figures.className = "figures";
  view.append(fresh, trouble, notices, figures, el("div", { class: "columns" },
    section("Pages", pages), section("Backlog", work),
    section("Time to decision", times), section("Since the collection was created", totals)));
  let before = null;
  repeat(signal, 2000, async () => {
    const quality = await api("/v1/reports/quality", { signal });
    const now = performance.now();
    const { counters, backlog, decisions } = quality;
    const decided = decisions.waited.reduce((sum, each) => sum + each.pages, 0);
    const per = (value, last) => (last && value >= last ? 1000 * (value - last) / (now - before.now) : null);
    const [ingest, deciding] = before
      ? [per(counters.submissions, before.submissions) ?? 0, per(decided, before.decided) ?? 0] : [null, null];
    before = { now, submissions: counters.submissions, decided };
    fresh.at();
    showQuality(quality);
    showNotices(trouble, notReady(quality));
    figures.replaceChildren(
      figure(number(counters.live), "live pages"), figure(number(counters.groups), "groups"),
      figure(rate(ingest), "submissions"), figure(rate(deciding), "decisions"),
      figure(number(backlog.pending), "pending pages"), figure(duration(decisions.oldest_pending_ms), "longest wait"));
    pages.replaceChildren(facts([
      ["Unique", number(quality.unique)], ["Winners", number(counters.winners)],
      ["Duplicates", number(counters.duplicates)], ["Secondary pages, kept", number(counters.secondaries)],
      ["Redirects", number(counters.redirects)], ["Unresolved redirects", number(counters.unresolved)],
      ["Dead pages on record", number(counters.dead)]]));
    work.replaceChildren(
      el("p", { class: "hint", id: "room" }, `${number(backlog.pending)} of at most ${number(quality.pending_limit)} pending pages`),
      el("progress", { max: quality.pending_limit, value: backlog.pending, "aria-labelledby": "room" }),
      facts([
        ["Confirmed pages to be compared", number(backlog.deferred_searches)],
        ["Members to be verified", number(backlog.unverified)],
        ["Groups to be recomputed", number(backlog.dirty_groups)],
        ["Groups whose kept pages must be determined", number(backlog.uncovered_groups)],
        ["Messages between shards", number(backlog.messages)]]));
    times.replaceChildren(...waits(decisions.waited, decided));
    totals.replaceChildren(facts([
      ["Submissions", number(counters.submissions)], ["Unchanged submissions", number(counters.unchanged)],
      ["Submissions older than the record", number(counters.stale)],
      ["Updates confirmed at once", percent(quality.confirm_share)],
      ["Searches of the index", number(counters.searches)],
      ["Groups merged", number(counters.merges)],
      ["Members removed from groups", number(counters.evictions)],
      ["Comparisons with a winner", number(counters.verified)],
      ["Comparisons that found no near-duplicate", percent(quality.reject_share)]]));
  }, failed);
  // The group report reads every group, so it may be older than the other figures. The notice shows its age.
  repeat(signal, 15_000, async () => {
    const report = await api("/v1/reports/groups", { signal });
    const held = report.quarantined;
    counted.at(report.age_ms);
    notices.replaceChildren(...(held ? [el("p", { class: "notice" },
      `${count(held, "group")} ${held === 1 ? "is" : "are"} in quarantine: all pages of ${held === 1 ? "this group" : "these groups"} are kept. `,
      el("a", { href: "#/groups" }, "Show the groups"), counted)] : []));
  }, () => {});
}

/** Lists what an operator must do before the service accepts pages again. */
function notReady({ full_disks: full, not_ready: why }) {
  const notices = [];
  if (full) notices.push(`The disk of ${count(full, "range")} is full: free disk space, and ${full === 1 ? "the range resumes" : "the ranges resume"} without a restart.`);
  if (why) notices.push(`Pages are refused: ${visible(why)}`);
  return notices;
}

// Replaces the notices only if they changed, so that screen readers do not announce them again.
function showNotices(place, notices) {
  if ([...place.children].map(notice => notice.textContent).join("\n") === notices.join("\n")) return;
  place.replaceChildren(...notices.map(text => el("p", { class: "notice bad" }, text)));
}

function figure(value, name) {
  return el("p", { class: "figure" }, el("b", {}, value), el("span", {}, name));
}

function waits(classes, decided) {
  if (!decided) return [el("p", { class: "none" }, "No page has been decided since the service started.")];
  const bars = classes.flatMap(({ up_to_ms: bound, pages }, at) => {
    const name = bound === null ? "longer" : `up to ${duration(bound)}`;
    return [el("span", { id: `wait-${at}` }, name),
      el("progress", { max: decided, value: pages, "aria-labelledby": `wait-${at}` }), el("span", {}, number(pages))];
  });
  return [el("p", { class: "hint" }, `${count(decided, "page")} decided since the service started`),
    el("div", { class: "bars" }, bars)];
}
