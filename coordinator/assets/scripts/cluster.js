// Shows the nodes, the ranges and the log of a cluster. A single process has none of these.
import { api } from "./api.js";
import { el, section, table } from "./dom.js";
import { freshness, repeat } from "./refresh.js";
import { bytes, number, visible } from "./format_values.js";

export const title = "Cluster";

export function show(view, _, { signal, failed }) {
  const fresh = freshness();
  const body = el("div");
  view.append(fresh, body);
  repeat(signal, 5_000, async () => {
    const cluster = await api("/v1/cluster", { signal });
    fresh.at();
    body.replaceChildren(...(cluster.cluster === null
      ? [el("p", { class: "none" }, "This server is a single process and has no cluster.")] : parts(cluster)));
  }, failed);
}

function parts({ cluster, nodes, ranges, engine, orders_waiting: waiting, attention }) {
  const health = (answers, reason) => (answers ? "answers" : visible(reason ?? "does not answer"));
  return [
    section(`Cluster ${visible(cluster)}`,
      attention.length ? el("ul", {}, attention.map(each => el("li", { class: "notice" },
        `${visible(each.what)}: ${visible(each.remedy)}`))) : el("p", {}, "There are no faults."),
      el("p", { class: "hint" }, `Orders waiting in the index: ${number(waiting)}`)),
    section("Nodes", table("Nodes", [
      { head: "Node", cell: node => visible(node.name) },
      { head: "Tier", cell: node => `${visible(node.role)}${node.router ? ", router" : ""}` },
      { head: "Address", cell: node => visible(node.address) },
      { head: "State", cell: node => health(node.answers, node.reason) },
      { head: "Partitions", cell: node => number(node.partitions?.length), number: true },
      { head: "Contents", cell: node => number(node.contents), number: true },
      { head: "Orders behind", cell: node => number(node.lag), number: true },
    ], nodes)),
    section("Ranges", table("Ranges", [
      { head: "Range", cell: range => number(range.range) },
      { head: "Shards", cell: range => `${range.first_shard} to ${range.last_shard}` },
      { head: "Owner", cell: range => visible(range.owner ?? "none") },
      { head: "Writes", cell: range => (range.served ? "accepted" : "refused") },
      { head: "Replicas", cell: range => `${range.live_replicas} of ${range.replicas}`, number: true },
      { head: "Live pages", cell: range => number(range.live), number: true },
      { head: "Pending pages", cell: range => number(range.pending), number: true },
      { head: "Standbys", cell: range => range.standbys.map(standby =>
        `${visible(standby.node)} (${standby.follows ? `${number(standby.lag)} behind` : "does not follow"})`).join(", ") || "–" },
    ], ranges)),
    engine ? section("Log", table("Servers of the log", [
      { head: "Server", cell: server => visible(server.name ?? server.address) },
      { head: "Version", cell: server => visible(server.version ?? "–") },
      { head: "State", cell: server => health(server.answers, server.reason) },
    ], engine.servers), table("Streams of the log", [
      { head: "Range", cell: stream => number(stream.range) },
      { head: "Size", cell: stream => bytes(stream.bytes), number: true },
      { head: "Limit", cell: stream => bytes(stream.limit), number: true },
      { head: "Copies", cell: stream => `${number(stream.current_copies)} of ${number(stream.copies)}`, number: true },
    ], engine.streams)) : null,
  ].filter(Boolean);
}
