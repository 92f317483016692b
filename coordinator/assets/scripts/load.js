// Shows the load of the index and of tier 1, now and in the last hours, and the progress of a rebalancing.
import { api } from "./api.js";
import { chart } from "./chart.js";
import { el, facts, section, table } from "./dom.js";
import { freshness, repeat } from "./refresh.js";
import { bytes, duration, number, percent, rate, visible } from "./format_values.js";

export const title = "Load";

const few = value => number(value, value < 10 ? 1 : 0);
const HOURS_MS = 6 * 3_600_000;

export function show(view, _, { signal, failed }) {
  const line = (label, value, shown) => ({ label, value: point => value(point), shown });
  const busiest = (of) => point => (point.partitions.some(p => of(p) !== null)
    ? Math.max(...point.partitions.map(p => of(p) ?? 0)) : null);
  const total = (of) => point => (point.partitions.some(p => of(p) !== null)
    ? point.partitions.reduce((sum, p) => sum + (of(p) ?? 0), 0) / point.partitions.length : null);
  const charts = [
    ["Submissions and decisions", [line("submissions", p => p.submissions_per_s, rate), line("decisions", p => p.decisions_per_s, rate)]],
    ["Pending pages", [line("pages", p => p.pending, few)]],
    ["Longest wait", [line("oldest page", p => p.oldest_pending_ms ?? 0, duration)]],
    ["Time to decision", [line("median, at most", p => p.decision_p50_ms, duration),
      line("95th percentile, at most", p => p.decision_p95_ms, duration)]],
    ["Searches", [line("searches", p => p.searches_per_s, rate)]],
    ["Partitions searched", [line("mean per search", p => p.fan_out, value => number(value, 2))]],
    ["Searches received by a partition", [line("busiest", busiest(p => p.received_per_s), rate),
      line("mean", total(p => p.received_per_s), rate)]],
    ["Contents of a partition", [line("largest", busiest(p => p.contents), few),
      line("mean", total(p => p.contents), few)]],
  ].map(([name, lines]) => [name, chart(name, lines, signal)]);
  const [nodes, partitions, rebalance] = [el("div"), el("div"), el("div")];
  const [noted, now, planned] = [freshness(), freshness(), freshness()];
  view.append(
    el("h2", {}, "The last six hours, as recorded by this coordinator"), noted,
    el("div", { class: "columns wide" }, charts.map(([name, figure]) => section(name, figure))),
    section("Rebalancing", rebalance, planned),
    section("Nodes", nodes, now), section("Partitions", partitions));
  let points = [];
  repeat(signal, 5_000, async () => {
    const since = points.length ? `?since=${points.at(-1).at_ms}` : "";
    const history = await api(`/v1/load/history${since}`, { signal });
    const first = history.now_ms - HOURS_MS;
    points = points.concat(history.points).filter(point => point.at_ms >= first);
    if (points.length) noted.at(history.now_ms - points.at(-1).at_ms);
    for (const [, figure] of charts) figure.show(points);
  }, failed);
  repeat(signal, 5_000, async () => {
    const load = await api("/v1/reports/load-balance", { signal });
    now.at();
    nodes.replaceChildren(el("p", { class: "hint" },
      `Imbalance ${number(load.node_imbalance, 3)}, at random ${number(load.node_imbalance_floor, 3)}; `
      + `${percent(load.node_fan_out_saved)} of fan-out saved; plan ${load.plan_version}, `
      + `signature file ${bytes(load.file_bytes)}.`),
    table("Nodes", [
      { head: "Node", cell: node => number(node.node) + (load.drained.includes(node.node) ? ", drained" : "") },
      { head: "Partitions", cell: node => number(node.partitions), number: true }, ...figures(),
    ], load.nodes));
    partitions.replaceChildren(table("Partitions", [
      { head: "Partition", cell: partition => number(partition.partition) },
      { head: "Node", cell: partition => number(partition.node), number: true }, ...figures(),
    ], load.partitions));
  }, failed);
  repeat(signal, 2_000, async () => {
    const present = await api("/v1/rebalance", { signal });
    planned.at();
    rebalance.replaceChildren(...progress(present));
  }, error => {
    if (error) rebalance.replaceChildren(el("p", { class: "none" }, visible(error.message)));
  });
}

function figures() {
  return [
    { head: "Contents", cell: each => number(each.contents), number: true },
    { head: "Pages", cell: each => number(each.pages), number: true },
    { head: "Received", cell: each => number(each.received), number: true },
    { head: "Comparisons", cell: each => number(each.comparisons), number: true },
    { head: "Memory", cell: each => bytes(each.bytes), number: true },
  ];
}

function progress({ plan_version: plan, progress: under, request, outcome }) {
  const last = outcome && facts([["Last request", visible(JSON.stringify(
    Object.fromEntries(Object.entries(outcome).filter(([, value]) => value !== null && value !== false))))]]);
  if (!under) {
    return [el("p", {}, request ? "A change will begin soon." : `No change is in progress. Plan ${plan} is in force.`), last].filter(Boolean);
  }
  return [
    el("p", { id: "moved" }, `Plan ${under.next_version} replaces plan ${under.plan_version}: ${number(under.copied)} of `
      + `${number(under.contents)} contents are copied, ${number(under.changed)} of them again, in ${duration(1000 * under.seconds)}.`),
    el("progress", { max: Math.max(1, under.contents), value: under.copied, "aria-labelledby": "moved" }), last,
  ].filter(Boolean);
}
