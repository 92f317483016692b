// Values as text for a person.

// Characters that are not seen, or that turn the order of what is around them: control characters, marks of direction,
// characters without width. In a URL they could make it look like another.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\u{e0000}-\u{e0fff}]/gu;

/** A text from data in which everything is seen: what is not is written as `\u{202E}`. */
export function visible(text) {
  const escaped = character => `\\u{${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}}`;
  return String(text).replace(HIDDEN, escaped);
}

/** A number, at most so many digits behind the point; a dash where there is none. */
export function number(value, digits = 0) {
  return value === null || value === undefined
    ? "–" : Number(value).toLocaleString("en", { maximumFractionDigits: digits });
}

/** How many of something: `1 group`, `2 groups`. */
export function count(value, one, many = `${one}s`) {
  return `${number(value)} ${value === 1 ? one : many}`;
}

/** A figure a second. */
export function rate(value) {
  return value === null || value === undefined ? "–" : `${number(value, value < 10 ? 1 : 0)}/s`;
}

/** A share from 0 to 1. */
export function percent(value) {
  return value === null || value === undefined ? "–" : `${number(100 * value, 1)} %`;
}

/** A similarity, with all digits that tell it from the threshold. */
export function similarity(value) {
  return value === null || value === undefined ? "–" : number(value, 4);
}

/** Bytes, in units of 1,000. */
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit += 1) value /= 1000;
  return `${number(value, unit && value < 100 ? 1 : 0)} ${units[unit]}`;
}

/** A time in milliseconds. */
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

/** By which rule a page comes first. */
export function rule(name) {
  return name === null || name === undefined ? "–" : RULES[name] ?? words(name);
}

/** A name of the interface in words. */
export function words(name) {
  return visible(name).replaceAll("_", " ");
}
