// Formats values as text for people.

// Invisible characters, and characters that change the order of the text around them: control characters, direction marks, and
// characters without width. In a URL, they could make the URL look like another one.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\u{e0000}-\u{e0fff}]/gu;

/** Makes all characters of a text from data visible: hidden characters are written as `\u{202E}`. */
export function visible(text) {
  const escaped = character => `\\u{${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}}`;
  return String(text).replace(HIDDEN, escaped);
}

/** Formats a number with at most `digits` decimals. A missing number becomes a dash. */
export function number(value, digits = 0) {
  return value === null || value === undefined
    ? "–" : Number(value).toLocaleString("en", { maximumFractionDigits: digits });
}

/** Formats a count with its noun: `1 group`, `2 groups`. */
export function count(value, one, many = `${one}s`) {
  return `${number(value)} ${value === 1 ? one : many}`;
}

/** Formats a rate per second. */
export function rate(value) {
  return value === null || value === undefined ? "–" : `${number(value, value < 10 ? 1 : 0)}/s`;
}

/** Formats a share from 0 to 1 as a percentage. */
export function percent(value) {
  return value === null || value === undefined ? "–" : `${number(100 * value, 1)} %`;
}

/** Formats a similarity with enough digits to compare it with the threshold. */
export function similarity(value) {
  return value === null || value === undefined ? "–" : number(value, 4);
}

/** Formats a number of bytes, in units of 1,000. */
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit += 1) value /= 1000;
  return `${number(value, unit && value < 100 ? 1 : 0)} ${units[unit]}`;
}

/** Formats a duration in milliseconds. */
export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${number(ms, ms < 10 ? 1 : 0)} ms`;
  if (ms < 120_000) return `${number(ms / 1000, ms < 10_000 ? 1 : 0)} s`;
  if (ms < 7_200_000) return `${number(ms / 60_000)} min`;
  return `${number(ms / 3_600_000, 1)} h`;
}

const RULES = {
  market: "host in the market", popularity: "higher popularity", day_first_seen: "first seen on an earlier day",
  static_url: "no query in its URL", shorter_url: "shorter URL", first_seen: "first seen earlier", url: "order of the URLs",
};

/** Names the rule by which a page precedes another. */
export function rule(name) {
  return name === null || name === undefined ? "–" : RULES[name] ?? words(name);
}

/** Turns a name of the public interface into words. */
export function words(name) {
  return visible(name).replaceAll("_", " ");
}
