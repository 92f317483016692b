// Starts `doppel serve` on a temporary directory, and fills it with pages.
import { spawn, spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

// The tests run in the root of the checkout.
const ROOT = process.cwd();
const DOPPEL = process.env.DOPPEL ?? join(ROOT, "target/debug/doppel");

/** A URL with a character that reverses the direction of the text behind it, as an attacker may use it. The server escapes or keeps it. */
export const TURNED = "http://shop.example/\u202egpj.exe";

/** URLs of copies of one page, with more than 300 characters and no place for a line break behind the host. */
export const LONG = ["x", "y", "z"].map(letter => `http://endless-${letter}.example/${letter.repeat(300)}`);

/** Starts a server with a token for an operator. Returns `{ url, stop, token }`. */
export async function serveLocked() {
  const tokens = join(await mkdtemp(join(ROOT, "target/tmp/browser-")), "tokens");
  const made = spawnSync(DOPPEL, ["token", "new", "ann", "--role", "operate", "--tokens", tokens], { encoding: "utf8" });
  if (made.status !== 0) throw new Error(made.stderr);
  const token = made.stdout.trim();
  const { url, stop } = await serve(["--tokens", tokens], token);
  return { url, token, stop: async () => { await stop(); await rm(dirname(tokens), { recursive: true }); } };
}

/** Starts a server. Returns `{ url, stop }`. If the server demands tokens, requests carry `token`. */
export async function serve(options = [], token = null) {
  const directory = await mkdtemp(join(ROOT, "target/tmp/browser-"));
  const child = spawn(DOPPEL, ["serve", "--data", join(directory, "pages"), "--listen", "127.0.0.1:0", ...options],
    { stdio: ["ignore", "pipe", "ignore"] });
  const url = await new Promise((resolve, reject) => {
    let said = "";
    child.stdout.on("data", data => {
      said += data;
      const found = said.match(/listening on (http:\S+)/);
      if (found) resolve(found[1]);
    });
    child.on("exit", code => reject(new Error(`doppel exited with ${code} before it listened`)));
  });
  const stop = async () => {
    const ended = new Promise(resolve => child.on("exit", resolve));
    child.kill("SIGKILL");
    await ended;
    await rm(directory, { recursive: true });
  };
  try {
    await decided(url, token);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, stop };
}

/** Waits until every page is decided. The index of a server that has just started may not answer yet. */
async function decided(url, token = null) {
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  for (let tries = 0; ; tries += 1) {
    const answer = await fetch(`${url}/v1/flush?wait=true`, { method: "POST", headers });
    if (answer.ok && (await answer.json()).done) return;
    if (tries === 100) throw new Error(`${url} has not decided all pages after 100 attempts: ${answer.status}`);
    await new Promise(resolve => setTimeout(resolve, 200));
  }
}

function words(topic, from, count) {
  return Array.from({ length: count }, (_, at) => `${topic}${from + at}`).join(" ");
}

/** Fills a server: copies, near copies, redirects, a group above `--group-members-max 8`, a short page, and odd URLs. */
export async function fill(url) {
  const pages = [];
  for (let site = 0; site < 12; site += 1) {
    for (const path of ["", "?ref=mail", "/print"]) {
      pages.push({ url: `http://news${site}.example/a-rather-long-path/for/article-${site}${path}`, text: words(`n${site}x`, 0, 90) });
    }
  }
  for (let copy = 0; copy < 11; copy += 1) {
    pages.push({ url: `http://mirror${copy}.example/terms`, text: `${words("terms", 0, 100)} ${words(`m${copy}y`, 0, 2)}` });
  }
  pages.push({ url: TURNED, text: words("turned", 0, 90) }, { url: "http://shop.example/copy", text: words("turned", 0, 90) });
  pages.push({ url: `http://long.example/${"segment-without-any-end".repeat(12)}`, text: words("long", 0, 80) });
  for (const url of LONG) pages.push({ url, text: words("endless", 0, 80) });
  pages.push({ url: `${LONG[0]}moved`, redirect_to: LONG[1] });
  pages.push({ url: "http://moved.example/old", redirect_to: "http://news1.example/a-rather-long-path/for/article-1" });
  pages.push({ url: "http://short.example/", text: "a few words only" });
  const answer = await fetch(`${url}/v1/pages`, {
    method: "POST", headers: { "content-type": "application/x-ndjson" }, body: pages.map(page => JSON.stringify(page)).join("\n"),
  });
  const lines = (await answer.text()).trim().split("\n").map(line => JSON.parse(line));
  const refused = lines.filter(line => !line.outcome);
  if (refused.length) throw new Error(JSON.stringify(refused));
  await decided(url);
}

/** Writes the report of `doppel dedup` over pages with long URLs, hosts and words. Returns `{ path, remove }`. */
export async function writeReport() {
  const directory = await mkdtemp(join(ROOT, "target/tmp/browser-"));
  const input = join(directory, `${"long-name-of-an-input".repeat(9)}.jsonl`);
  const label = "h".repeat(60);
  const copies = ["", "a", "b"].map(at => ({ url: `http://${at}${label}.${label}.${label}.example/${"p".repeat(300)}`, text: words("r", 0, 60) }));
  const near = LONG.map((url, at) => ({ url, text: `${words("s", 0, 60)} ${"w".repeat(300)} ${words("t", at, 2)}` }));
  const moved = { url: `${LONG[0]}moved`, redirect_to: LONG[1] };
  await writeFile(input, [...copies, ...near, moved].map(page => JSON.stringify(page)).join("\n"));
  const path = join(directory, "report.html");
  const made = spawnSync(DOPPEL, ["dedup", "--report", path, input], { encoding: "utf8" });
  if (made.status !== 0) throw new Error(made.stderr);
  return { path, remove: () => rm(directory, { recursive: true }) };
}

/** Sends a GET request, and returns the JSON of the answer. */
export async function get(url) {
  return (await fetch(url)).json();
}
