// Takes the pictures of the documentation. Started by `cargo xtask screenshots`.

import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { close, launch, open, report, settled } from "./browser.mjs";

const images = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../docs/images");
const TRACE = "big_gpt2s_adam_b6/trace.json.zst";

const SHOTS = [
  { name: "report-overview", view: "overview" },
  { name: "report-timeline", view: "timeline", act: hoverBackward },
  { name: "report-compare", view: "compare" },
  { name: "report-offload", view: "offload", act: (page) => page.setViewportSize({ width: 1280, height: 1050 }) },
];

/** The page of `xmem estimate`, which PAGE names. */
async function estimate(browser) {
  const page = await browser.newPage();
  await page.setViewportSize({ width: 1280, height: 1320 });
  await page.goto(pathToFileURL(process.env.PAGE).href);
  await page.click("#try-resnet50");
  await page.waitForSelector("#summary");
  await page.selectOption("#device", "t4-16g");
  await page.waitForSelector(".work[aria-busy]");
  await page.waitForSelector(".work:not([aria-busy])");
  await page.waitForSelector("#largest[data-running=false]");
  await settled(page);
  await page.screenshot({ path: path.join(images, "estimate-page.png") });
  await page.close();
}

/** The peak and what is around it, with the pointer on a block. */
async function hoverBackward(page) {
  await page.keyboard.press("p");
  for (let press = 0; press < 2; press++) await page.keyboard.press("-");
  await settled(page);
  const plot = await page.locator(".plot").boundingBox();
  await page.mouse.move(plot.x + plot.width * 0.55, plot.y + plot.height * 0.8);
}

const browser = await launch({ width: 1280, height: 760 });
try {
  const one = report("one", TRACE, "--device", "rtx3060-12g");
  const two = report("two", TRACE, path.join(path.dirname(TRACE), "snapshot.pickle.zst"), "--device", "rtx3060-12g");
  const offload = report("offload", "networks/resnet32.json.zst", "--device", "p100-16g", "--offload", "serial,vdnn-all");
  const pages = { compare: two, offload };
  for (const { name, view, act } of SHOTS) {
    const page = await open(browser, pages[view] ?? one, view);
    await act?.(page);
    await settled(page);
    await page.screenshot({ path: path.join(images, `${name}.png`) });
    await page.close();
  }
  await estimate(browser);
} finally {
  await close(browser);
}
