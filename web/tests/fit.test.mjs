// The view of what makes a job fit, of a page with the data of `fit.json`, which a test of xmem-view writes. Started by
// `cargo xtask test-web`.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { deflateSync, inflateSync } from "node:zlib";
import { bytesOf, close, folder, launch, open, report, settled } from "./browser.mjs";

const RESNET = "resnet18_sgdm/trace.json.zst";
const FIT = JSON.parse(readFileSync(new URL("fit.json", import.meta.url), "utf8"));
const MIB = 2 ** 20;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser;
before(async () => {
  browser = await launch();
});
after(() => close(browser));

/** A page with other data about what makes the job fit. */
function fitted(name, change = (fit) => fit) {
  const file = path.join(folder, `${name}.html`);
  if (existsSync(file)) return file;
  const text = readFileSync(report("no fit", RESNET, "--device", "rtx3060-12g"), "utf8");
  const element = /(id="data-head">)([^<]*)/;
  const head = JSON.parse(inflateSync(Buffer.from(text.match(element)[2], "base64")));
  assert.equal(head.runs[0].fit, null);
  head.runs[0].fit = change(structuredClone(FIT));
  const data = deflateSync(JSON.stringify(head)).toString("base64");
  writeFileSync(file, text.replace(element, (_, start) => start + data));
  return file;
}

const usual = () => fitted("fit");
const cells = (page, table) => page.locator(`${table} tbody tr`).evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText)));

/** The places of points on the screen, by the names of what they stand for. */
async function places(page, section) {
  const found = await page.locator(`${section} .point`).evaluateAll((all) => all.map((point) => {
    const box = point.getBoundingClientRect();
    return [point.dataset.points, { x: box.x + box.width / 2, y: box.y + box.height / 2 }];
  }));
  return Object.fromEntries(found);
}

describe("measures", () => {
  test("every one is in the table with its figures", async () => {
    const page = await open(browser, usual(), "fit");
    const rows = await cells(page, "#measures");
    assert.deepEqual(rows.map(([name, ...rest]) => [name.split("\n")[0], ...rest.slice(0, 4)]), [
      ["as it is", "17.58 GiB", "no", "", ""],
      ["checkpointing", "12.21 GiB", "no", "+17 %", "nothing"],
      ["bfloat16", "11.33 GiB", "tight", "−20 %", "training"],
      ["checkpointing + early-zero-grad (suggested)", "10.74 GiB", "yes", "+17 %", "nothing"],
      ["early-zero-grad", "17.58 GiB", "no", "+0 %", "nothing"],
      ["fused", "–", "–", "–", "rounding"],
    ]);
    assert.equal(rows[5][5], "not applicable: gradients are accumulated");
    assert.equal(await bytesOf(page, "[data-figure=needs]"), FIT.base.needs_bytes);
    assert.match(await page.locator("#suggestion").innerText(), /Fits with checkpointing \+ early-zero-grad[^]*It ran with the memory of rtx3060-12g/);
    assert.equal(await page.locator("#run").innerText(), FIT.suggestion.run);
    assert.deepEqual(page.problems, []);
    await page.close();
  });

  test("points stand for memory and time, and those at one place are one", async () => {
    const page = await open(browser, usual(), "fit");
    const at = await places(page, "#measures");
    assert.deepEqual(Object.keys(at), ["bfloat16", "as it is; early-zero-grad", "checkpointing + early-zero-grad", "checkpointing"]);
    const [base, fast, suggested, slow] = [at["as it is; early-zero-grad"], at.bfloat16, at["checkpointing + early-zero-grad"], at.checkpointing];
    assert.ok(fast.x < base.x && base.x < suggested.x && Math.abs(suggested.x - slow.x) < 1);
    assert.ok(base.y < slow.y && slow.y < fast.y && fast.y < suggested.y);
    // Both axes are straight.
    const perMib = (slow.y - base.y) / (18_000 - 12_500);
    assert.ok(Math.abs(suggested.y - base.y - perMib * (18_000 - 11_000)) < 1);
    assert.ok(Math.abs((suggested.x - base.x) / 17 - (base.x - fast.x) / 20) < 0.1);
    await page.close();
  });

  test("pointer and keys show what a point stands for", async () => {
    const page = await open(browser, usual(), "fit");
    const tooltip = page.locator("#measures .tooltip");
    assert.ok(!(await tooltip.isVisible()));
    await page.locator("#measures .point[data-points=checkpointing]").hover();
    assert.match(await tooltip.innerText(), /checkpointing[^]*12\.21 GiB[^]*no, 590\.\d\d MiB too much[^]*\+17 %/);
    await page.mouse.move(0, 0);
    assert.ok(!(await tooltip.isVisible()));
    // One stop of the tabulator; arrows go on from there.
    assert.equal(await page.locator("#measures .point[tabindex='0']").count(), 1);
    await page.locator("#measures .point[tabindex='0']").focus();
    await page.keyboard.press("ArrowRight");
    assert.match(await tooltip.innerText(), /as it is[^]*early-zero-grad/);
    assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), /^as it is, Needs: 17\.58 GiB, Fits: no, /);
    await page.keyboard.press("Escape");
    assert.ok(!(await tooltip.isVisible()));
    await page.close();
  });

  test("a job that fits has no suggestion, and one without measures has no plot of them", async () => {
    const page = await open(browser, fitted("without", (fit) => ({ ...fit, tried: [], suggestion: null, base: { ...fit.base, fits: true, has_room: true } })), "fit");
    assert.equal(await page.locator("#measures, #suggestion").count(), 0);
    assert.equal(await page.locator("#values .point").count(), 6);
    assert.deepEqual(page.problems, []);
    await page.close();
  });
});

describe("values", () => {
  test("recorded values are in the table, those for the law, too", async () => {
    const page = await open(browser, usual(), "fit");
    assert.deepEqual(await cells(page, "#values > .scroll"), [
      ["1", "as it is", "1.37 GiB", "yes", ""],
      ["29", "as it is", "11.23 GiB", "yes", "largest that fits"],
      ["30", "as it is", "11.82 GiB", "no", ""],
      ["48", "as it is", "17.58 GiB", "no", ""],
      ["64", "as it is", "–", "–", "could not be recorded: the script raised ValueError"],
      ["48", "checkpointing + early-zero-grad", "10.74 GiB", "yes", "largest that fits; those between were not recorded"],
      ["56", "checkpointing + early-zero-grad", "12.60 GiB", "no", ""],
    ]);
    await page.locator("#law summary").press("Enter");
    const law = await cells(page, "#law");
    assert.deepEqual(law.find(([value]) => value === "16"), ["16", "6.64 GiB", "6.36 GiB to 6.92 GiB", "57 %"]);
    assert.deepEqual(page.problems, []);
    await page.close();
  });

  test("points lie on the curve, and what fits is below the line of the device", async () => {
    const page = await open(browser, usual(), "fit");
    const at = await places(page, "#values");
    const [one, last, next] = [at["batch 1 as it is"], at["batch 29 as it is"], at["batch 48 as it is"]];
    const perMib = (one.y - next.y) / (18_000 - 1_400);
    assert.ok(Math.abs(one.y - last.y - perMib * (11_500 - 1_400)) < 1);
    assert.ok(Math.abs((next.x - one.x) / 47 - (last.x - one.x) / 28) < 0.1);
    // The line of the device is drawn where its memory lies between both.
    const line = one.y - perMib * (FIT.device.memory_bytes / MIB - 1_400);
    const dark = await page.evaluate(([x, y]) => {
      const canvas = document.querySelector("#values canvas");
      const box = canvas.getBoundingClientRect();
      const column = canvas.getContext("2d").getImageData(Math.round(x - box.x), Math.round(y - box.y) - 3, 1, 7).data;
      return Math.min(...[0, 1, 2, 3, 4, 5, 6].map((row) => column[4 * row] + column[4 * row + 1] + column[4 * row + 2] + (column[4 * row + 3] < 200 ? 999 : 0)));
    }, [next.x + 12, line]);
    assert.ok(dark < 150, dark.toString());
    await page.close();
  });

  test("a search without a law, and one of a single value, are drawn", async () => {
    const single = (fit) => ({ ...fit, law: null, values: [{ ...fit.values[0], points: [fit.values[0].points[0]], refused: [], fits: 1 }] });
    const page = await open(browser, fitted("single", single), "fit");
    assert.deepEqual(await cells(page, "#values > .scroll"), [["1", "1.37 GiB", "yes", "largest that fits"]]);
    assert.equal(await page.locator("#law").count(), 0);
    assert.equal(await page.locator("#values .point").count(), 1);
    assert.deepEqual(page.problems, []);
    await page.close();
  });
});

test("a page without this data has no such view", async () => {
  const page = await open(browser, report("no fit", RESNET, "--device", "rtx3060-12g"));
  assert.equal(await page.locator("#open-fit").count(), 0);
  const other = await open(browser, usual());
  assert.equal(await other.locator("#open-fit").innerText(), "Fit");
  await page.close();
  await other.close();
});

describe("accessibility", () => {
  for (const scheme of ["light", "dark"]) {
    test(`axe finds nothing serious, ${scheme}`, async () => {
      const page = await open(browser, usual(), "fit", scheme);
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run(document));
      const serious = violations.filter((violation) => ["serious", "critical"].includes(violation.impact));
      assert.deepEqual(serious.map(({ id, nodes }) => `${id}: ${nodes[0].html} ${nodes[0].failureSummary}`), []);
      await page.close();
    });
  }

  test("the view fits a narrow window and paper", async () => {
    const page = await open(browser, usual(), "fit");
    await page.setViewportSize({ width: 390, height: 800 });
    await settled(page);
    // A command beside its title would have a letter a line.
    assert.ok((await page.locator("#run").boundingBox()).width > 200);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
    await page.emulateMedia({ media: "print" });
    await page.setViewportSize({ width: 720, height: 1000 });
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 720);
    await page.close();
  });

  test("a browser without a canvas has the tables", async () => {
    const page = await browser.newPage();
    const problems = [];
    page.on("pageerror", (error) => problems.push(String(error)));
    await page.addInitScript(() => {
      HTMLCanvasElement.prototype.getContext = () => null;
    });
    await page.goto(`file://${usual()}#fit`);
    await page.waitForSelector("#view[data-view=fit]");
    await settled(page);
    assert.equal((await cells(page, "#measures")).length, 6);
    assert.equal(await page.locator(".point").count(), 0);
    assert.deepEqual(problems, []);
    await page.close();
  });
});
