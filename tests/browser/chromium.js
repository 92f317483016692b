// Starts a Chromium, and collects every error of its pages.
import { mkdir } from "node:fs/promises";
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const SCREENSHOTS = `${process.cwd()}/target/tmp/screenshots/`;

/** Foreign host name that the browser resolves to this machine. */
export const FOREIGN = "evil.example";

/** Starts the browser. */
export async function launch() {
  await mkdir(SCREENSHOTS, { recursive: true });
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []), "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync",
      `--host-resolver-rules=MAP ${FOREIGN} 127.0.0.1`,
    ],
  });
}

/** Opens a page. `complaints` collects errors, violations of the content policy and failed requests. */
export async function open(browser, { width = 1600, height = 1000, dark = false } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", reducedMotion: "reduce" });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", message => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", error => complaints.push(error.message));
  return { page, complaints, close: () => context.close() };
}

/** Waits until a view has loaded its data. */
export async function settle(page) {
  await page.waitForFunction(() => !document.querySelector(".fresh:not([data-at])")
    && !["Loading"].includes(document.getElementById("state").textContent));
}

/** Saves a screenshot of a page. */
export async function screenshot(page, name) {
  await page.screenshot({ path: `${SCREENSHOTS}${name}.png`, fullPage: true });
}

/** Checks that every element fits into the page, that no word is broken letter by letter, and that every control has a name. */
export async function checkLayout(page, name) {
  const wrong = await page.evaluate(() => {
    const found = [];
    const root = document.documentElement;
    if (root.scrollWidth > root.clientWidth) found.push(`the page is ${root.scrollWidth} px wide in ${root.clientWidth} px`);
    for (const element of document.querySelectorAll("header *, main *, footer *")) {
      if (element.closest(".unseen, .chart, [hidden], thead") || !element.getClientRects().length) continue;
      const { right, width, height } = element.getBoundingClientRect();
      const said = `${element.tagName} ${element.className} ${element.textContent.slice(0, 40)}`;
      if (right > root.clientWidth + 1) found.push(`${said} ends at ${right}`);
      const size = parseFloat(getComputedStyle(element).fontSize);
      const longest = Math.max(...element.textContent.split(/[\s/.:?=-]+/u).map(word => word.length));
      const isText = element.childNodes.length && [...element.childNodes].every(node => node.nodeType === 3);
      if (isText && longest > 3 && longest < 16 && width < size * 2 && height > size * 4) found.push(`${said} is broken letter by letter`);
    }
    for (const control of document.querySelectorAll("input, select, button, progress")) {
      const named = control.labels?.length || control.getAttribute("aria-labelledby") || control.textContent.trim();
      if (!named) found.push(`${control.outerHTML} has no name`);
    }
    return found;
  });
  assert.deepEqual(wrong, [], name);
}
