// Elements of the page. Text from data only ever enters it as text.
import { visible } from "./text.js";

/** An element with attributes; functions are listeners, `false` leaves out. Texts among the children become text. */
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

/** A URL from data, with a link to what is known of the page. */
export function pageLink(url) {
  if (!url) return "–";
  return el("a", { class: "url", href: `#/page?url=${encodeURIComponent(url)}` }, visible(url));
}

/** The id of a group, with a link to it. */
export function groupLink(group) {
  if (!group) return "–";
  return el("a", { class: "code", href: `#/group?id=${encodeURIComponent(group)}` }, visible(group));
}

/** A status as a badge. */
export function status(name) {
  return el("span", { class: `badge ${/^[a-z]+$/.test(name) ? name : ""}` }, visible(name));
}

/**
 * A table. Columns are `{ head, cell, number }`: the head, the cell of a row as text or element, whether it is a number. On narrow
 * screens each row becomes a list with the heads beside the cells.
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

/** Names and values. */
export function facts(pairs) {
  const shown = pairs.filter(pair => pair && pair[1] !== null && pair[1] !== undefined);
  return el("dl", {}, shown.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

/** A section with a heading. */
export function section(title, ...children) {
  return el("section", {}, el("h2", {}, title), children);
}

/** A labelled field of a form. */
export function field(id, label, attributes = {}) {
  return el("p", { class: "field" }, el("label", { for: id }, label),
    el("input", { id, name: id, autocomplete: "off", spellcheck: "false", ...attributes }));
}

/** What went wrong, to be read out. */
export function failure(error) {
  return el("p", { class: "failure", role: "alert" }, visible(error.message));
}
