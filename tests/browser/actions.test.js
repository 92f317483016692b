// Actions of an operator on the page, and requests of a foreign web page, which must be refused.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { FOREIGN, launch, open, screenshot, settle } from "./chromium.js";
import { fill, get, serve, serveLocked } from "./doppel.js";

let [browser, server] = [];

before(async () => {
  browser = await launch();
  server = await serve(["--group-members-max", "8"]);
  await fill(server.url);
});

after(async () => Promise.all([browser?.close(), server?.stop()]));

test("an operator previews a repair from the list of groups, and has two pages explained", async () => {
  const { page, complaints, close } = await open(browser);
  await page.goto(`${server.url}/#/groups`);
  await page.getByRole("link", { name: "Preview a repair" }).first().click();
  await page.getByRole("button", { name: "Dry run" }).click();
  await page.getByText("Dry run.").waitFor();
  await page.goto(`${server.url}/#/explain`);
  await page.getByLabel("URL of one page").fill("http://mirror1.example/terms");
  await page.getByLabel("URL of the other page").fill("http://mirror2.example/terms");
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByRole("heading", { name: "The pages are near-duplicates" }).waitFor();
  // The page shows the server's own message about a refused request.
  await page.goto(`${server.url}/#/group?id=g9999-0`);
  await page.getByRole("alert").waitFor();
  assert.ok(complaints.every(text => text.includes("404")), complaints.join("\n"));
  await close();
});

test("an operator looks up a page and repairs its group with the keyboard alone", async () => {
  const { page, complaints, close } = await open(browser);
  await page.goto(`${server.url}/#/page`);
  await page.getByLabel("URL of the page").fill("http://mirror3.example/terms");
  await page.keyboard.press("Enter");
  await page.locator("dd a.code").first().focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Repair" }).waitFor();
  const repair = page.getByRole("button", { name: "Repair", exact: true });
  assert.ok(await repair.isDisabled(), "a repair must be enabled only after a dry run");
  await page.getByLabel("Your name").fill("alice");
  await page.keyboard.press("Enter");
  await page.getByText("Dry run.").waitFor();
  const repairs = async () => {
    const trail = await get(`${server.url}/v1/repairs`);
    return trail.repairs.filter(each => each.event === "repair").map(each => each.by);
  };
  assert.deepEqual(await repairs(), [], "a dry run must change nothing");
  await repair.focus();
  await page.keyboard.press("Enter");
  await page.getByText("Repaired.").waitFor();
  await screenshot(page, "filled-repaired");
  assert.deepEqual(await repairs(), ["alice"]);
  assert.deepEqual(complaints, []);
  await close();
});

test("the page asks for a token once, keeps it in memory, and sends it", async () => {
  const { page, close } = await open(browser);
  const locked = await serveLocked();
  const seen = [];
  page.on("request", request => { if (request.url().includes("/v1/")) seen.push(request.headers().authorization); });
  await page.goto(locked.url);
  const token = page.getByLabel("Token", { exact: true });
  await token.waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), "token-input");
  await screenshot(page, "token");
  await page.keyboard.type("wrong");
  await page.keyboard.press("Enter");
  await page.getByText("does not accept this token").waitFor();
  await page.keyboard.type(locked.token);
  await page.keyboard.press("Enter");
  await settle(page);
  assert.equal(await page.locator("dialog[open]").count(), 0);
  assert.ok(seen.includes(undefined) && seen.includes("Bearer wrong") && seen.includes(`Bearer ${locked.token}`));
  const kept = await page.evaluate(() => [document.cookie, localStorage.length, sessionStorage.length]);
  assert.deepEqual(kept, ["", 0, 0]);
  // After a cancel, refreshes do not ask again, and a button opens the form.
  await page.reload();
  await token.waitFor();
  await page.keyboard.press("Escape");
  await page.waitForTimeout(2500);
  assert.equal(await page.locator("dialog[open]").count(), 0);
  await page.getByRole("button", { name: "Enter a token" }).click();
  await token.waitFor();
  await close();
  await locked.stop();
});

test("a web page on a foreign host name can neither change nor read anything", async () => {
  const { page, close } = await open(browser);
  const stranger = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<!doctype html><title>x</title>"));
  await new Promise(resolve => stranger.listen(0, "127.0.0.1", resolve));
  await page.goto(`http://${FOREIGN}:${stranger.address().port}/`);
  const tried = await page.evaluate(async url => {
    const send = options => fetch(`${url}/v1/pages`, { method: "POST", body: '{"url":"http://stolen.example/","text":"x"}', ...options })
      .then(answer => answer.type, error => error.name);
    return [
      await send({ mode: "no-cors" }),
      await send({ headers: { "content-type": "application/json" } }),
      await fetch(`${url}/v1/reports/quality`).then(answer => answer.text(), error => error.name),
    ];
  }, server.url);
  assert.deepEqual(tried, ["opaque", "TypeError", "TypeError"]);
  const status = await get(`${server.url}/v1/status?url=http://stolen.example/`);
  assert.equal(status.status, "unknown");
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  assert.ok(/http_requests_total\{method="POST",route="\/v1\/pages",status="403"\} [1-9]/.test(metrics), "the server must refuse the request as one of another site");
  // A foreign host name that resolves to this server (DNS rebinding) is refused, too.
  const rebound = await page.goto(server.url.replace("127.0.0.1", FOREIGN));
  assert.equal(rebound.status(), 421);
  await new Promise(resolve => stranger.close(resolve));
  await close();
});
