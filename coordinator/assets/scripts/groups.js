// Lists groups that an operator may want to inspect: groups in quarantine, suspicious groups, and the largest groups.
import { api } from "./api.js";
import { el, field, groupLink, pageLink, section, table } from "./dom.js";
import { freshness, repeat } from "./refresh.js";
import { count, number } from "./format_values.js";

export const title = "Groups";

const COLUMNS = [
  { head: "Group", cell: group => groupLink(group.group) },
  { head: "Winner", cell: group => pageLink(group.winner) },
  { head: "Members", cell: group => number(group.members), number: true },
  { head: "Differ from winner", cell: group => number(group.dissimilar), number: true },
  { head: "Secondary", cell: group => number(group.secondaries), number: true },
  { head: "State", cell: state },
  { head: "Action", cell: group => el("a", { href: `#/group?id=${encodeURIComponent(group.group)}&repair=try` }, "Preview a repair") },
];

export function show(view, parameters, { signal, failed }) {
  const open = event => {
    event.preventDefault();
    location.hash = `#/group?id=${encodeURIComponent(new FormData(event.target).get("id").trim())}`;
  };
  const share = Math.min(100, Math.max(1, Number(parameters.get("share")) || 50));
  const choose = event => { location.hash = `#/groups?share=${event.target.value}`; };
  const [suspicious, largest, sizes] = [el("div"), el("div"), el("div")];
  const [listed, counted] = [freshness(), freshness()];
  view.append(
    section("Open a group", el("form", { class: "row", submit: open },
      field("id", "Id of the group", { required: true, placeholder: "g12-0", pattern: "g[0-9]+-[0-9]+" }),
      el("p", { class: "field short" }, el("button", { class: "main", type: "submit" }, "Open")))),
    section("In quarantine or suspicious", el("p", { class: "field short" },
      el("label", { for: "share" }, "Share of members that differ from the winner, from which a group is suspicious"),
      el("select", { id: "share", change: choose }, [10, 25, 50, 75, 100].map(percent =>
        el("option", { value: percent, selected: percent === share }, `${percent} %`)))), suspicious, listed),
    el("div", { class: "columns wide" }, section("Largest groups", largest, counted), section("Group sizes", sizes)));
  repeat(signal, 10_000, async () => {
    const list = await api(`/v1/groups?suspicious=${share}&limit=100`, { signal });
    listed.at();
    suspicious.replaceChildren(table("Groups in quarantine or suspicious", COLUMNS, list.groups, "There are no such groups."),
      ...(list.next ? [el("p", { class: "hint" }, "There are more groups. The list shows the first 100.")] : []));
  }, failed);
  repeat(signal, 10_000, async () => {
    const report = await api("/v1/reports/groups", { signal });
    counted.at(report.age_ms);
    largest.replaceChildren(el("p", { class: "hint" },
      `${count(report.groups, "group")}${report.truncated ? " and more" : ""}, ${number(report.quarantined)} in quarantine`),
    table("Largest groups", COLUMNS.slice(0, 3).concat(COLUMNS[5]), report.largest, "There are no groups."));
    const most = Math.max(1, ...report.histogram.map(each => each.groups));
    sizes.replaceChildren(report.histogram.length ? el("div", { class: "bars" },
      report.histogram.flatMap((each, at) => [
        el("span", { id: `size-${at}` }, each.from === each.to ? count(each.from, "member") : `${number(each.from)} to ${number(each.to)}`),
        el("progress", { max: most, value: each.groups, "aria-labelledby": `size-${at}` }),
        el("span", {}, number(each.groups))])) : el("p", { class: "none" }, "There are no groups."));
  }, failed);
}

/** Describes what is special about a group. */
export function state(group) {
  const words = [group.quarantined && "in quarantine", group.dirty && "to be recomputed", group.uncovered && "kept pages to be determined"];
  return words.filter(Boolean).join(", ") || "settled";
}
