// Builds the elements of the page. Text from data enters the page only as text nodes, never as HTML.
import { visible } from "./format_values.js";

/** Creates an element. Functions among the attributes become listeners, and `false` omits an attribute. Texts become text nodes. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined));
  return element;
}

/** Links a URL from data to the view of the page. */
export function pageLink(url) {
  if (!url) return "–";
  return el("a", { class: "url", href: `#/page?url=${encodeURIComponent(url)}` }, visible(url));
}

/** Links the id of a group to the view of the group. */
export function groupLink(group) {
  if (!group) return "–";
  return el("a", { class: "code", href: `#/group?id=${encodeURIComponent(group)}` }, visible(group));
}

/** Shows a status as a badge. */
export function status(name) {
  return el("span", { class: `badge ${/^[a-z]+$/.test(name) ? name : ""}` }, visible(name));
}

/**
 * Creates a table. Each column is `{ head, cell, number }`: its heading, a function from a row to a text or element, and whether the
 * cells are numbers. On a narrow screen, each row becomes a list with the headings beside the cells.
 */
export function table(caption, columns, rows, none = "None.") {
  if (!rows.length) return el("p", { class: "none" }, none);
  const kind = column => (column.number ? "number" : null);
  const head = columns.map(column => el("th", { scope: "col", class: kind(column) }, column.head));
  const cell = (column, shown) => el("td", {
    class: [column.number && "number", shown === "–" && "nothing"].filter(Boolean).join(" ") || null, "data-head": column.head,
  }, el("span", {}, shown));
  const cells = row => columns.map(column => cell(column, column.cell(row)));
  return el("table", {},
    el("caption", { class: "unseen" }, caption),
    el("thead", {}, el("tr", {}, head)),
    el("tbody", {}, rows.map(row => el("tr", {}, cells(row)))));
}

/** Lists names and values. Pairs without a value are omitted. */
export function facts(pairs) {
  const shown = pairs.filter(pair => pair && pair[1] !== null && pair[1] !== undefined);
  return el("dl", {}, shown.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

/** Creates a section with a heading. */
export function section(title, ...children) {
  return el("section", {}, el("h2", {}, title), children);
}

/** Creates an input field with a label. */
export function field(id, label, attributes = {}) {
  return el("p", { class: "field" }, el("label", { for: id }, label),
    el("input", { id, name: id, autocomplete: "off", spellcheck: "false", ...attributes }));
}

/** Shows an error in a form that screen readers announce. */
export function failure(error) {
  return el("p", { class: "failure", role: "alert" }, visible(error.message));
}
