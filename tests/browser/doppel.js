// A `doppel serve` on a directory of its own, and pages for it.
import { spawn, spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

// The tests are run from the root of the checkout.
const ROOT = process.cwd();
const DOPPEL = process.env.DOPPEL ?? join(ROOT, "target/debug/doppel");

/** A character that turns the order of what follows, as an attacker would put it into a URL: the server escapes or keeps it. */
export const TURNED = "http://shop.example/\u202egpj.exe";

/** URLs of 300 characters and more in which nothing but the letters behind the host could be broken: they are copies of each other. */
export const LONG = ["x", "y", "z"].map(letter => `http://endless-${letter}.example/${letter.repeat(300)}`);

/** Starts a server with a token for an operator; `{ url, stop, token }`. */
export async function serveLocked() {
  const tokens = join(await mkdtemp(join(ROOT, "target/tmp/browser-")), "tokens");
  const made = spawnSync(DOPPEL, ["token", "new", "ann", "--role", "operate", "--tokens", tokens], { encoding: "utf8" });
  if (made.status !== 0) throw new Error(made.stderr);
  const token = made.stdout.trim();
  const { url, stop } = await serve(["--tokens", tokens], token);
  return { url, token, stop: async () => { await stop(); await rm(dirname(tokens), { recursive: true }); } };
}

/** Starts a server; `{ url, stop }`. Where it has tokens it is asked with this one. */
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
    child.on("exit", code => reject(new Error(`doppel ended with ${code}`)));
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

/** Waits until everything is decided; the index of a server that has just started may not answer yet. */
async function decided(url, token = null) {
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  for (let tries = 0; ; tries += 1) {
    const answer = await fetch(`${url}/v1/flush?wait=true`, { method: "POST", headers });
    if (answer.ok && (await answer.json()).done) return;
    if (tries === 100) throw new Error(`${url} does not decide: ${answer.status}`);
    await new Promise(resolve => setTimeout(resolve, 200));
  }
}

function words(topic, from, count) {
  return Array.from({ length: count }, (_, at) => `${topic}${from + at}`).join(" ");
}

/** Fills a server: copies, near copies, a chain, a redirect, a dead page, a group past `--group-members-max 8`, odd URLs. */
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

/** Writes the report of `doppel dedup` over pages with long URLs, hosts, and words; `{ path, remove }`. */
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

/** The answer of a server as JSON. */
export async function get(url) {
  return (await fetch(url)).json();
}
