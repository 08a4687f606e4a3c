// The verdict of the page is that of the command line. Started by `cargo xtask test-web`.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { close, launch, open, report, xmem } from "./browser.mjs";

const GPT2 = "gpt2_adamw/trace.json.zst";

let browser;
before(async () => {
  browser = await launch();
});
after(() => close(browser));

describe("a job that does not fit", () => {
  for (const capacity of ["360MiB", "396MiB", "600MiB", "2GiB"]) {
    test(`the page says of ${capacity} what the command line says`, async () => {
      const options = ["--device", "rtx3060-12g", "--capacity", capacity];
      const answer = JSON.parse(xmem("replay", GPT2, ...options, "--cudnn", "model", "--format", "json", "--exit-zero"));
      const page = await open(browser, report(`said-${capacity}`, GPT2, ...options));
      const word = answer.decision.replaceAll("_", " ");
      assert.equal((await page.locator("#verdict").innerText()).toLowerCase(), word);
      assert.equal(await page.locator("#summary").innerText(), answer.summary);
      assert.ok(!(await page.locator(".verdict").innerText()).includes("are needed"));
      await page.close();
    });
  }

  test("the labels of the peak and of the out-of-memory overlapped", async () => {
    const page = await open(browser, report("labels", GPT2, "--device", "rtx3060-12g", "--capacity", "360MiB"), "timeline");
    const labels = JSON.parse(await page.locator("[data-labels]").getAttribute("data-labels"));
    assert.deepEqual(labels.map(({ text }) => text).sort(), ["out of memory", "peak"]);
    const [one, other] = labels;
    const beside = one.x + one.width < other.x || other.x + other.width < one.x;
    assert.ok(beside || Math.abs(one.y - other.y) >= 11, JSON.stringify(labels));
    await page.close();
  });
});
