// Repairs a group: a dry run first, then the repair.
import { api, hasToken } from "./api.js";
import { el, failure, field, pageLink, section } from "./dom.js";
import { count, number } from "./format_values.js";

/** Creates the section that repairs a group. `again` reloads the group. If `first` is set, the dry-run button gets the focus. */
export function repair(group, { signal, again, first }) {
  const result = el("div", { role: "status" });
  const run = async dry => {
    const by = form.elements.by?.value.trim();
    const query = new URLSearchParams({ dry_run: String(dry), ...(by ? { by } : {}) });
    for (const button of form.querySelectorAll("button")) button.disabled = true;
    try {
      const report = await api(`/v1/groups/${encodeURIComponent(group)}/repair?${query}`, { method: "POST", signal });
      result.replaceChildren(outcome(report));
      apply.disabled = !dry;
      // The repair is applied, even if the group cannot be reloaded.
      if (!dry) await again().catch(error => { if (!signal.aborted) result.append(failure(error)); });
    } catch (error) {
      if (!signal.aborted) result.replaceChildren(failure(error));
    }
    attempt.disabled = false;
  };
  const attempt = el("button", { type: "submit", class: "main" }, "Dry run");
  const apply = el("button", { type: "button", class: "danger", disabled: true, click: () => run(false) }, "Repair");
  const form = el("form", { class: "row", submit: event => { event.preventDefault(); run(true); } },
    // If the server has tokens, the repair trail uses the name of the token.
    hasToken() ? null : field("by", "Your name, for the repair trail", { maxlength: 100, placeholder: "anonymous" }),
    el("p", { class: "buttons" }, attempt, apply));
  if (first) setTimeout(() => attempt.focus());
  return section("Repair", el("p", { class: "hint" },
    "A repair compares all members exactly and separates members that do not belong together. Start with a dry run, which changes nothing."),
  form, result);
}

function outcome({ before, components, applied, total_members: members, total_components: sets, truncated }) {
  const [pages, parts] = [members ?? before.length, sets ?? components.length];
  const says = parts === 1 && !applied ? `All ${count(pages, "member")} belong together. The repair would change nothing.`
    : `${count(pages, "member")} ${applied ? "were divided" : "would be divided"} into ${count(parts, "set")}.`;
  return el("div", {}, el("p", {}, el("strong", {}, applied ? "Repaired. " : "Dry run. "), says),
    components.length > 1 ? el("ol", {}, components.slice(0, 20).map(component =>
      el("li", {}, `${count(component.length, "page")}: `, pageLink(component[0]),
        component.length > 1 ? ` and ${number(component.length - 1)} more` : ""))) : null,
    truncated || components.length > 20 ? el("p", { class: "hint" }, "The list is incomplete.") : null);
}
