// Times a page: first picture, pan and zoom, memory of the tab. Started by `cargo xtask time-web`.

import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync } from "node:fs";
import os from "node:os";
import { pathToFileURL } from "node:url";
import { close, launch, report, settled, xmem } from "./browser.mjs";

const MIB = 2 ** 20;
const mib = (bytes) => `${Math.round(bytes / MIB)} MiB`;
/** The memory that a tab may take with a million blocks. */
const MAX_TAB = 500e6;
const file = report("large", process.env.TRACE, "--device", "h100-80g");
const { requests, allocations } = JSON.parse(xmem("replay", process.env.TRACE, "--device", "h100-80g", "--cudnn", "model", "--format", "json", "--exit-zero")).allocator;
const say = (name, value) => console.log(`${name.padEnd(34)} ${value}`);
say("machine", `${os.cpus().length} × ${os.cpus()[0].model}`);
say("blocks, requests", `${allocations}, ${requests}`);
say("size of the page", `${(statSync(file).size / MIB).toFixed(1)} MiB`);

const browser = await launch({ width: 1280, height: 800 });
try {
  for (const view of ["overview", "timeline"]) {
    const page = await browser.newPage();
    page.on("console", (message) => message.type() === "error" && assert.fail(message.text()));
    page.on("pageerror", (error) => assert.fail(error));
    const begin = performance.now();
    await page.goto(`${pathToFileURL(file)}#${view}`, { waitUntil: "commit" });
    await page.waitForSelector(`#view[data-view="${view}"]`);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    say(`first picture, ${view}`, `${Math.round(performance.now() - begin)} ms`);
    if (view === "timeline") await timeline(page);
    await page.close();
  }
} finally {
  await close(browser);
}

async function timeline(page) {
  const plot = await page.locator(".plot").boundingBox();
  await page.mouse.move(plot.x + plot.width / 2, plot.y + plot.height / 2);
  for (const [name, act] of [
    ["zoom in", () => page.mouse.wheel(0, -60)],
    ["pan", () => page.mouse.wheel(40, 0)],
    ["zoom out", () => page.mouse.wheel(0, 60)],
  ]) {
    await page.evaluate(() => {
      window.frames_ = [];
      let last = performance.now();
      const next = (now) => {
        window.frames_.push(now - last);
        last = now;
        window.counting = requestAnimationFrame(next);
      };
      window.counting = requestAnimationFrame(next);
    });
    for (let step = 0; step < 60; step++) await act();
    const times = await page.evaluate(() => {
      cancelAnimationFrame(window.counting);
      return window.frames_.slice(1);
    });
    times.sort((a, b) => a - b);
    const mean = times.reduce((sum, time) => sum + time, 0) / times.length;
    say(`frames a second, ${name}`, `${(1000 / mean).toFixed(0)}, slowest of 20: ${times[Math.floor(times.length * 0.95)].toFixed(0)} ms`);
  }
  await settled(page);
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize, embedderHeapUsedSize = 0, backingStorageSize = 0 } = await session.send("Runtime.getHeapUsage");
  const { now, most } = await largestRenderer(page);
  say("process of the tab", `${mib(now)} of its own, ${mib(most)} resident at most`);
  if (allocations <= 1.1e6) assert.ok(most <= MAX_TAB, `the tab has taken more than ${mib(MAX_TAB)}`);
  say("JavaScript heap, other, buffers", [usedSize, embedderHeapUsedSize, backingStorageSize].map(mib).join(", "));
}

/** The memory that the kernel counts for the largest process that shows pages: now, and at most. */
async function largestRenderer(page) {
  const session = await page.context().browser().newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const files = processInfo.filter(({ type }) => type === "renderer").map(({ id }) => `/proc/${id}/status`);
  const memory = files.filter((file) => existsSync(file)).map((file) => {
    const kib = (name) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(readFileSync(file, "utf8"))[1]);
    return { now: 1024 * kib("RssAnon"), most: 1024 * kib("VmHWM") };
  });
  return memory.sort((a, b) => b.now - a.now)[0];
}
