// Shows one group with its members, and repairs it.
import { api } from "./api.js";
import { el, facts, failure, groupLink, pageLink, section, status, table } from "./dom.js";
import { freshness } from "./refresh.js";
import { number, rule, similarity, visible } from "./format_values.js";
import { state } from "./groups.js";
import { repair } from "./repair.js";

export const title = "Group";

const SECTION = 100;

export async function show(view, parameters, { signal }) {
  const id = parameters.get("id") ?? "";
  const [summary, members] = [el("div"), el("div")];
  const fresh = freshness();
  const more = el("button", { type: "button", hidden: true }, "More members");
  const read = async after => {
    const next = after ? `&after=${encodeURIComponent(after)}` : "";
    const group = await api(`/v1/groups/${encodeURIComponent(id)}?limit=${SECTION}${next}`, { signal });
    // Only the advice on a page names the rule by which a kept page precedes it.
    const { pages: advice } = group.pages.length
      ? await api("/v1/status", { method: "POST", body: { urls: group.pages.map(page => page.url).slice(0, 1000) }, signal })
      : { pages: [] };
    group.pages.forEach((page, at) => { page.rule = advice[at]?.rule; });
    fresh.at(group.age_ms);
    return group;
  };
  const shown = [];
  const list = group => {
    shown.push(...group.pages);
    members.replaceChildren(table("Members of the group", [
      { head: "Page", cell: page => pageLink(page.url) },
      { head: "Status", cell: page => status(page.status) },
      { head: "Duplicate of", cell: page => (page.duplicate_of ? pageLink(page.duplicate_of) : "–") },
      { head: "Similarity", cell: page => similarity(page.similarity), number: true },
      { head: "Rule of precedence", cell: page => rule(page.rule) },
    ], shown, group.merged_into ? "The members are in the other group." : "The group has no members."));
    more.hidden = !group.next;
    more.onclick = async () => {
      try {
        list(await read(group.next));
      } catch (error) {
        if (!signal.aborted) members.append(failure(error));
      }
    };
  };
  const fill = group => summary.replaceChildren(facts([
    ["Merged into", group.merged_into && groupLink(group.merged_into)],
    ["Winner", group.winner && pageLink(group.winner)],
    ["Members", number(group.members)],
    ["Members that differ from the winner", number(group.dissimilar)],
    ["Secondary pages, kept", number(group.secondaries)],
    ["State", state(group)]]));
  const again = async () => {
    const group = await read();
    shown.length = 0;
    fill(group);
    list(group);
  };
  try {
    const group = await read();
    view.append(section(`Group ${visible(id)}`, summary, fresh),
      repair(group.merged_into ?? group.group, { signal, again, first: parameters.get("repair") === "try" }),
      section("Members", members, el("p", { class: "buttons" }, more)));
    fill(group);
    list(group);
  } catch (error) {
    if (!signal.aborted) view.append(failure(error));
  }
}
