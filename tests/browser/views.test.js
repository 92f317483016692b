// Checks every view on an empty and on a filled collection, narrow and wide, light and dark.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { checkLayout, launch, open, screenshot, settle } from "./chromium.js";
import { LONG, TURNED, fill, get, serve, writeReport } from "./doppel.js";

const A = encodeURIComponent("http://news1.example/a-rather-long-path/for/article-1");
const B = encodeURIComponent("http://mirror1.example/terms");

let [browser, empty, filled, group] = [];

before(async () => {
  browser = await launch();
  empty = await serve();
  filled = await serve(["--index-nodes", "2", "--group-members-max", "8"]);
  await fill(filled.url);
  const { groups } = await get(`${filled.url}/v1/groups?suspicious=100`);
  assert.equal(groups.length, 1, "one group is in quarantine");
  group = groups[0].group;
});

after(async () => Promise.all([browser?.close(), empty?.stop(), filled?.stop()]));

for (const { width, dark } of [{ width: 420 }, { width: 1600 }, { width: 420, dark: true }, { width: 1600, dark: true }]) {
  const look = `${width}${dark ? "-dark" : ""}`;
  for (const name of ["empty", "filled"]) {
    test(`${name}, ${width} px${dark ? ", dark" : ""}`, async () => {
      const server = name === "empty" ? empty : filled;
      const { page, complaints, close } = await open(browser, { width, dark });
      const views = {
        overview: "", page: name === "empty" ? "page" : `page?url=${A}`, groups: "groups", load: "load", cluster: "cluster",
        ...(name === "filled" ? { explain: `explain?a=${A}&b=${B}`, group: `group?id=${group}` } : { explain: "explain" }),
      };
      for (const [view, address] of Object.entries(views)) {
        await page.goto(`${server.url}/#/${address}`);
        await settle(page);
        await page.waitForTimeout(view === "overview" ? 400 : 150);
        await checkLayout(page, `${view} of ${name} at ${look}`);
        await screenshot(page, `${name}-${view}-${look}`);
        assert.equal(await page.locator("[role=alert]").count(), 0, `${view}: ${await page.locator("main").innerText()}`);
      }
      assert.deepEqual(complaints, []);
      await close();
    });
  }
}

for (const width of [420, 1600]) {
  test(`URLs of 300 characters without a break fit, ${width} px`, async () => {
    const { page, complaints, close } = await open(browser, { width });
    const [one, other] = LONG.map(encodeURIComponent);
    const known = await get(`${filled.url}/v1/status?url=${other}`);
    const missing = encodeURIComponent(`http://missing.example/${"m".repeat(300)}`);
    const views = {
      overview: "", groups: "groups", load: "load", cluster: "cluster", page: `page?url=${other}`, "page-redirect": `page?url=${one}moved`,
      "page-unknown": `page?url=${missing}`, explain: `explain?a=${one}&b=${other}`, "explain-redirect": `explain?a=${one}moved&b=${other}`,
      "explain-unlike": `explain?a=${one}&b=${A}`, "explain-unknown": `explain?a=${missing}&b=${one}`,
      "explain-no-url": `explain?a=${"q".repeat(300)}&b=${one}`, "page-no-url": `page?url=${"q".repeat(300)}`,
      group: `group?id=${known.group}`, "group-unknown": `group?id=g${"9".repeat(300)}-0`,
    };
    for (const [view, address] of Object.entries(views)) {
      await page.goto(`${filled.url}/#/${address}`);
      await settle(page).catch(() => {});
      await page.waitForTimeout(300);
      await checkLayout(page, `${view} with long URLs at ${width}`);
      await screenshot(page, `long-${view}-${width}`);
    }
    // A repair lists the pages of a group.
    await page.goto(`${filled.url}/#/group?id=${known.group}`);
    await page.getByRole("button", { name: "Dry run" }).click();
    await page.getByText("Dry run.").waitFor();
    await checkLayout(page, `a repair with long URLs at ${width}`);
    // The requests for something that is no URL, and for an unknown group, fail as expected.
    assert.ok(complaints.every(text => /40[04]/.test(text)), complaints.join("\n"));
    await close();
  });

  test(`the report of dedup fits, ${width} px`, async () => {
    const { page, complaints, close } = await open(browser, { width });
    const report = await writeReport();
    await page.goto(`file://${report.path}`);
    assert.ok((await page.locator("body").innerText()).includes(LONG[0]));
    await checkLayout(page, `the report at ${width}`);
    await screenshot(page, `long-report-${width}`);
    assert.deepEqual(complaints, []);
    await report.remove();
    await close();
  });
}

test("views show the figures of the service", async () => {
  const { page, close } = await open(browser);
  await page.goto(filled.url);
  await settle(page);
  const quality = await get(`${filled.url}/v1/reports/quality`);
  const main = await page.locator("main").innerText();
  assert.match(main, new RegExp(`${quality.counters.live}\\s+live pages`));
  assert.match(main, new RegExp(`${quality.counters.groups}\\s+groups`));
  assert.match(main, /as of \d+ s ago/);
  assert.equal(await page.locator("#state").innerText(), "All pages are decided");
  await page.locator(".notice", { hasText: "1 group is in quarantine" }).waitFor();
  // Wait for a chart, which shows that the figures have been computed.
  await page.goto(`${filled.url}/#/load`);
  await settle(page);
  await page.locator("canvas").first().waitFor({ timeout: 20_000 });
  assert.equal(await page.locator("figure canvas").count(), 8, "every figure must have a chart");
  await screenshot(page, "filled-load-charts");
  await close();
});

test("a full disk and refused pages are shown, and disappear once they are over", async () => {
  const { page, close } = await open(browser);
  const real = await get(`${filled.url}/v1/reports/quality`);
  let said = { full_disks: 2, not_ready: "the disk is full \u202eno room" };
  await page.route("**/v1/reports/quality", route => route.fulfill({ json: { ...real, ...said } }));
  await page.goto(filled.url);
  await settle(page);
  await page.locator(".notice.bad", { hasText: "The disk of 2 ranges is full: free disk space" }).waitFor();
  await page.locator(".notice.bad", { hasText: "Pages are refused: the disk is full \\u{202E}no room" }).waitFor();
  assert.equal(await page.locator("#state").innerText(), "Refuses pages");
  await checkLayout(page, "overview of a full disk");
  // Other answers do not overwrite that state.
  await page.waitForTimeout(2_500);
  assert.equal(await page.locator("#state").innerText(), "Refuses pages");
  said = {};
  await page.locator("#state", { hasText: "All pages are decided" }).waitFor();
  assert.equal(await page.locator(".notice.bad").count(), 0);
  await close();
});

test("characters that change the direction of text are made visible", async () => {
  const { page, close } = await open(browser);
  await page.goto(`${filled.url}/#/page?url=${encodeURIComponent(TURNED)}`);
  await settle(page);
  const shown = await page.locator("main").innerText();
  assert.ok(!/[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]/u.test(shown), shown);
  const visible = await page.evaluate(() => import("/assets/format_values.js").then(text => text.visible("a\u202eb\u2066\u200f\u061c<i>")));
  assert.equal(visible, "a\\u{202E}b\\u{2066}\\u{200F}\\u{061C}<i>");
  await close();
});

test("every control can be reached with the keyboard", async () => {
  const { page, close } = await open(browser);
  await page.goto(`${filled.url}/#/group?id=${group}`);
  await settle(page);
  const wanted = await page.locator("a:visible, button:visible:enabled, input:visible, select:visible").count();
  const reached = new Set();
  for (let step = 0; step < wanted + 5; step += 1) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const element = document.activeElement;
      if (element === document.body) return null;
      const every = [...document.querySelectorAll("a, button, input, select")];
      const { outlineStyle } = getComputedStyle(element);
      return { at: every.indexOf(element), seen: outlineStyle !== "none", html: element.outerHTML.slice(0, 120) };
    });
    if (!at) continue;
    assert.ok(at.seen, `the focus must be visible on ${at.html}`);
    reached.add(at.at);
  }
  assert.ok(reached.size >= wanted, `only ${reached.size} of ${wanted} controls were reached`);
  // A link of the navigation opens its view and moves the focus to it.
  await page.getByRole("link", { name: "Groups", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Groups" }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await close();
});
