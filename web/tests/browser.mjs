// A browser, and pages of the program under test: XMEM names it. CHROMIUM names the browser.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const here = path.dirname(fileURLToPath(import.meta.url));
const traces = path.resolve(here, "../../traces");
export const folder = mkdtempSync(path.join(os.tmpdir(), "xmem-web-"));

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export const VIEWS = ["overview", "timeline", "allocator", "peak", "rules"];

/** The status of a command about a recording that is not intact. */
const WITHHELD = 4;

/** What xmem prints. Recordings are named from the folder of the traces. */
export function xmem(...args) {
  const ran = spawnSync(process.env.XMEM, args, { cwd: traces, encoding: "utf8", maxBuffer: 1 << 28 });
  assert.ok([0, WITHHELD].includes(ran.status), `xmem ${args.join(" ")}: ${ran.stderr}`);
  return ran.stdout;
}

/** Writes a page. */
export function report(name, ...args) {
  const file = path.join(folder, `${name}.html`);
  if (!existsSync(file)) xmem("report", ...args, "--cudnn", "model", "-o", file);
  return file;
}

/** A browser with an empty profile. */
export function launch(viewport = { width: 1200, height: 800 }) {
  return chromium.launchPersistentContext(path.join(folder, "profile"), {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: FLAGS,
    viewport,
  });
}

export async function close(browser) {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
}

/** Opens a page at a view. Whatever goes wrong in it is in `problems`. */
export async function open(browser, file, view = "overview", scheme = "light") {
  const page = await browser.newPage();
  await page.emulateMedia({ colorScheme: scheme });
  page.problems = [];
  page.on("console", (message) => message.type() === "error" && page.problems.push(message.text()));
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("dialog", (dialog) => page.problems.push(`dialog: ${dialog.message()}`));
  page.on("request", (request) => /^(file|blob|data):/.test(request.url()) || page.problems.push(`request: ${request.url()}`));
  await page.goto(`${pathToFileURL(file)}#${view}`);
  await page.waitForSelector(`#view[data-view="${view}"]`);
  await settled(page);
  return page;
}

/** Opens another view of the page. */
export async function show(page, view) {
  await page.click(`#open-${view}`);
  await page.waitForSelector(`#view[data-view="${view}"]`);
  await settled(page);
}

/** Waits until what was asked for is drawn and described. */
export async function settled(page) {
  await page.waitForTimeout(150);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)))));
}

/** The bytes that an element stands for. */
export async function bytesOf(page, selector) {
  const text = await page.locator(selector).first().getAttribute("data-bytes");
  assert.ok(text !== null, selector);
  return Number(text);
}
