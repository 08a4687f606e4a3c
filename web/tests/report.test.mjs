// The page in a real browser. Started by `cargo xtask test-web`.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { bytesOf, close, folder, launch, open, report, settled, show, VIEWS, xmem } from "./browser.mjs";
import { differing } from "./pictures.mjs";

const RECORDINGS = [
  "resnet18_sgdm/trace.json.zst",
  "gpt2_adamw/trace.json.zst",
  "llama_sgd_pos0/trace.json.zst",
  "big_gpt2s_adam_b6/trace.json.zst",
  "dcgan_adam/trace.json.zst",
  "bert_fp16_scaler_adamw/snapshot.pickle.zst",
];
const DEVICE = ["--device", "rtx3060-12g"];
const [RESNET, GPT2, , BIG, , SNAPSHOT] = RECORDINGS;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const screens = path.join(path.dirname(fileURLToPath(import.meta.url)), "screens");

let browser;
before(async () => {
  browser = await launch();
});
after(() => close(browser));

const pageOf = (recording) => report(path.basename(path.dirname(recording)), recording, ...DEVICE);
const compared = () => report("compared", RESNET, GPT2, ...DEVICE);
const answer = (recording) => JSON.parse(xmem("replay", recording, ...DEVICE, "--cudnn", "model", "--format", "json", "--explain", "--exit-zero"));

/** `1.23 MiB`, as the page writes it. */
function words(value) {
  for (const [unit, name] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (value >= unit) return `${(value / unit).toFixed(2)} ${name}`;
  }
  return `${value} B`;
}

/** Bounds as the page writes them: as differences where they would look the same. */
function between(value, low, high) {
  const signed = (by) => (by === 0 ? "±0" : by > 0 ? `+${words(by)}` : `−${words(-by)}`);
  return words(low) === words(high) ? `${signed(low - value)} to ${signed(high - value)}` : `${words(low)} to ${words(high)}`;
}

describe("recordings", () => {
  for (const recording of RECORDINGS) {
    test(`every view of ${recording} opens, and nothing goes wrong`, async () => {
      const page = await open(browser, pageOf(recording));
      for (const view of VIEWS) {
        await show(page, view);
        assert.ok((await page.locator("#view").innerText()).length > 80, view);
      }
      assert.deepEqual(page.problems, []);
      await page.close();
    });

    test(`the figures of ${recording} are those of the JSON answer`, async () => {
      const page = await open(browser, pageOf(recording));
      const { peak, by_role: byRole, range } = answer(recording);
      for (const figure of ["allocated", "reserved", "device"]) {
        const bytes = peak[`${figure}_bytes`];
        assert.equal(await bytesOf(page, `#figure-${figure}`), bytes, figure);
        assert.equal(await page.locator(`#figure-${figure} .value`).first().innerText(), words(bytes));
        const { low, high } = range[`${figure}_bytes`];
        const text = await page.locator(`#figure-${figure}`).innerText();
        assert.ok(low === high || text.includes(between(bytes, low, high)), text);
      }
      // From the columns, not from the answer.
      assert.equal(await bytesOf(page, "#at-peak"), peak.allocated_bytes);
      const rows = (await page.locator(".overview table").first().innerText()).split("\n");
      for (const [role, bytes] of Object.entries(byRole)) {
        const row = rows.find((line) => line.trim().startsWith(role.replaceAll("_", " ")));
        if (bytes > 0) assert.ok(row?.includes(words(bytes)), `${role}: ${row}`);
        else assert.equal(row, undefined, role);
      }
      await show(page, "allocator");
      await page.getByRole("button", { name: "Peak reserved" }).click();
      await settled(page);
      assert.equal(await bytesOf(page, "[data-figure=reserved]"), peak.reserved_bytes);
      assert.deepEqual(page.problems, []);
      await page.close();
    });
  }
});

describe("timeline", () => {
  const text = (page) => page.locator("#timeline-status").innerText();
  const rows = (page) => page.locator(".blocks tbody tr").allInnerTexts();
  const number = (digits) => Number(digits.replaceAll(",", ""));
  const span = async (page) => {
    const [, from, to] = (await text(page)).match(/^Requests ([\d,]+) to ([\d,]+):/);
    return number(to) - number(from);
  };

  test("search and filters leave the blocks that match", async () => {
    const page = await open(browser, pageOf(RESNET), "timeline");
    await page.keyboard.press("/");
    await page.keyboard.type("Linear_0");
    await settled(page);
    assert.match(await text(page), /\d+ blocks? of [\d,]+ match/);
    const found = await rows(page);
    assert.ok(found.length > 0 && found.every((row) => row.includes("Linear_0")), found.join("\n"));
    await page.fill("#search", "no such name anywhere");
    await settled(page);
    assert.match(await text(page), /; 0 blocks of/);
    assert.deepEqual(await rows(page), []);
    await page.fill("#search", "");
    await page.fill("#least-size", "9");
    await settled(page);
    const large = await rows(page);
    assert.ok(large.length > 0 && large.every((row) => /^9\.\d\d MiB/.test(row.trim())), large.join("\n"));
    await page.fill("#freed-within", "4");
    await settled(page);
    const brief = await rows(page);
    assert.ok(brief.length > 0 && brief.length < large.length, brief.join("\n"));
    assert.deepEqual(page.problems, []);
    await page.close();
  });

  test("wheel, buttons and brush change the window", async () => {
    const page = await open(browser, pageOf(GPT2), "timeline");
    const all = await span(page);
    const plot = await page.locator(".plot").boundingBox();
    await page.mouse.move(plot.x + plot.width / 2, plot.y + plot.height / 2);
    await page.mouse.wheel(0, -400);
    await settled(page);
    const zoomed = await span(page);
    assert.ok(zoomed < all, `${zoomed} < ${all}`);
    await page.getByRole("button", { name: "All", exact: true }).click();
    await settled(page);
    assert.equal(await span(page), all);
    const brush = await page.locator(".brush").boundingBox();
    await page.mouse.move(brush.x + 100, brush.y + 10);
    await page.mouse.down();
    await page.mouse.move(brush.x + 200, brush.y + 10, { steps: 4 });
    await page.mouse.up();
    await settled(page);
    const share = (await span(page)) / all;
    assert.ok(Math.abs(share - 100 / brush.width) < 0.02, share.toString());
    await page.close();
  });

  test("the list and the strip of phases zoom to one", async () => {
    const page = await open(browser, pageOf(RESNET), "timeline");
    await page.selectOption("#phase", { label: "iteration 1, backward" });
    await settled(page);
    const shown = await text(page);
    assert.match(shown, /in iteration 1, backward/);
    await page.getByRole("button", { name: "All", exact: true }).click();
    await settled(page);
    const strip = await page.locator(".strip").boundingBox();
    await page.mouse.click(strip.x + 64 + (strip.width - 64) * 0.6, strip.y + 6);
    await settled(page);
    assert.equal(await text(page), shown);
    assert.equal(await page.locator("#phase option:checked").innerText(), "iteration 1, backward");
    await page.close();
  });

  test("a block is described where the pointer is, and chosen by a click, however small", async () => {
    const page = await open(browser, pageOf(GPT2), "timeline");
    await page.getByRole("button", { name: "Peak", exact: true }).click();
    await settled(page);
    const plot = await page.locator(".plot").boundingBox();
    const place = [plot.x + plot.width / 2, plot.y + plot.height * 0.7];
    await page.mouse.move(...place);
    const tooltip = await page.locator(".tooltip").innerText();
    for (const term of ["Operator", "Lifetime", "Allocated", "Request"]) assert.ok(tooltip.includes(term), tooltip);
    await page.mouse.click(...place);
    await settled(page);
    const panel = await page.locator(".panel").innerText();
    assert.ok(panel.includes("Address") && panel.includes(tooltip.split("\n")[0]), panel);
    // What the largest block that a rule made is described by.
    await page.fill("#search", "dropout-mask");
    await settled(page);
    const rule = await page.locator(".blocks tbody tr").first().innerText();
    await page.locator(".blocks tbody button").first().press("Enter");
    await settled(page);
    const described = await page.locator(".panel").innerText();
    for (const term of ["Operator", "Module", "Line", "Lifetime", "Rule"]) assert.ok(described.includes(term), described);
    assert.ok(rule.includes("dropout-mask") && described.includes("dropout-mask"), rule);
    await page.close();
  });

  test("keys alone reach the single event and its block", async () => {
    const page = await open(browser, pageOf(RESNET));
    await page.keyboard.press("2");
    await page.waitForSelector('#view[data-view="timeline"]');
    await page.keyboard.press("p");
    for (let press = 0; press < 12; press++) await page.keyboard.press("+");
    await settled(page);
    assert.ok((await span(page)) <= 8, await text(page));
    await page.keyboard.press(".");
    await settled(page);
    assert.match(await text(page), /request [\d,]+ (allocates|frees)/);
    await page.keyboard.press("Enter");
    await settled(page);
    assert.equal(await page.locator(".panel h3").count(), 1);
    await page.keyboard.press("Escape");
    await settled(page);
    assert.equal(await page.locator(".panel").count(), 0);
    await page.keyboard.press("0");
    await settled(page);
    assert.equal(await span(page), answer(RESNET).allocator.requests - 1);
    await page.keyboard.press("?");
    assert.ok(await page.locator("dialog").isVisible());
    await page.keyboard.press("Escape");
    assert.ok(!(await page.locator("dialog").isVisible()));
    for (const [at, view] of VIEWS.entries()) {
      await page.keyboard.press((at + 1).toString());
      await page.waitForSelector(`#view[data-view="${view}"]`);
      assert.equal(await page.locator("[role=status]").innerText(), await page.locator("nav [aria-current]").innerText());
    }
    assert.deepEqual(page.problems, []);
    await page.close();
  });

  test("groups can be left out, and blocks can be grouped by everything", async () => {
    const page = await open(browser, pageOf(RESNET), "timeline");
    for (const key of ["Module", "Size", "Operator", "Line", "Phase", "Role"]) {
      await page.locator(".choice label", { hasText: key }).click();
      await settled(page);
      assert.ok((await page.locator(".legend .entry").count()) > 1, key);
    }
    const before = await rows(page);
    await page.locator(".legend .entry", { hasText: "workspace" }).click();
    await settled(page);
    const left = await rows(page);
    assert.ok(before.some((row) => row.includes("workspace")) && !left.some((row) => row.includes("workspace")));
    await page.close();
  });
});

describe("treemap", () => {
  test("modules nest as far as there is room, and no tile shows a part of a number", async () => {
    const page = await open(browser, pageOf(BIG));
    await page.locator(".overview .choice label", { hasText: "Module" }).click();
    const names = await page.locator(".tile").evaluateAll((all) => all.map((tile) => tile.title));
    for (const name of ["GPT2LMHeadModel_0", "GPT2Model_0", "GPT2Block_3", "GPT2MLP_3"]) assert.ok(names.some((title) => title.startsWith(name)), `${name}: ${names.join("; ")}`);
    for (const key of ["Role", "Operator", "Line", "Module"]) {
      await page.locator(".overview .choice label", { hasText: key }).click();
      const cut = await page.locator(".tile span").evaluateAll((all) => all.filter((span) => {
        const [text, label] = [span.getBoundingClientRect(), span.parentElement.getBoundingClientRect()];
        // Below its label it is not seen at all.
        return text.top < label.bottom - 1 && (text.right > label.right + 1 || text.bottom > label.bottom + 1);
      }).map((span) => span.parentElement.innerText));
      assert.deepEqual(cut, [], key);
    }
    await page.close();
  });
});

describe("allocator", () => {
  test("the largest free piece over time is that of the map", async () => {
    const page = await open(browser, pageOf(RESNET), "allocator");
    const { width, height } = await page.locator(".curve").boundingBox();
    for (const share of [0.2, 0.5, 0.8]) {
      await page.locator(".curve").click({ position: { x: Math.floor(width * share), y: height / 2 } });
      await settled(page);
      const figure = (name) => bytesOf(page, `[data-figure='${name}']`);
      const [reserved, used, largest] = [await figure("reserved"), await figure("in blocks"), await figure("largest free piece")];
      const drawn = await page.evaluate((share) => {
        const canvas = document.querySelector(".curve");
        // Beside the mark of the moment.
        const x = Math.floor((Math.floor(canvas.clientWidth * share) + 3) * devicePixelRatio);
        const { data } = canvas.getContext("2d").getImageData(x, 0, 1, canvas.height);
        const tone = getComputedStyle(document.documentElement).getPropertyValue("--largest").trim();
        const wanted = [1, 3, 5].map((at) => parseInt(tone.slice(at, at + 2), 16));
        let rows = 0;
        for (let y = 0; y < canvas.height; y++) if (wanted.every((value, at) => Math.abs(data[4 * y + at] - value) < 3)) rows++;
        return rows / canvas.height;
      }, share);
      const { peak } = answer(RESNET);
      const expected = Math.min(largest, reserved - used) / (peak.reserved_bytes * 1.04);
      assert.ok(Math.abs(drawn - expected) < 0.06, `${share}: ${drawn} for ${expected}`);
    }
    await page.close();
  });

  test("the slider shows the state after any request", async () => {
    const page = await open(browser, pageOf(RESNET), "allocator");
    const used = () => bytesOf(page, "[data-figure='in blocks']");
    const { peak } = answer(RESNET);
    assert.equal(await used(), peak.allocated_bytes);
    await page.locator("#moment").focus();
    await page.keyboard.press("Home");
    await settled(page);
    const first = await used();
    assert.ok(first > 0 && first < peak.allocated_bytes, first.toString());
    await page.keyboard.press("ArrowRight");
    await settled(page);
    assert.notEqual(await used(), first);
    await page.close();
  });

  test("an out-of-memory shows what the request met", async () => {
    const page = await open(browser, report("oom", GPT2, "--capacity", "600MiB"));
    assert.equal(await page.locator("#verdict").innerText(), "Does not fit");
    await show(page, "allocator");
    await page.getByRole("button", { name: "Out of memory" }).click();
    await settled(page);
    assert.match(await page.locator(".panel.bad").innerText(), /Out of memory: .* requested/);
    assert.deepEqual(page.problems, []);
    await page.close();
  });
});

describe("out of memory", () => {
  const short = ["--capacity", "600MiB", "--cudnn", "model"];
  const ask = () => JSON.parse(xmem("replay", GPT2, ...short, "--format", "json", "--exit-zero")).out_of_memory;

  test("the state of a predicted one is shown", async () => {
    const page = await open(browser, report("short", GPT2, "--capacity", "600MiB"), "allocator");
    await page.getByRole("button", { name: "Out of memory" }).click();
    await settled(page);
    const panel = await page.getByRole("region", { name: "Out of memory", exact: true }).innerText();
    const { requested_bytes: requested, free_bytes: free } = ask();
    for (const bytes of [requested, free]) assert.ok(panel.includes(words(bytes)), panel);
    await page.close();
  });

  test("the map is that of the device that is too small, which has no piece for the request", async () => {
    const options = ["--device", "rtx3060-12g", "--capacity", "2GiB", "--cudnn", "model"];
    const { out_of_memory: oom } = JSON.parse(xmem("replay", BIG, ...options, "--format", "json", "--exit-zero"));
    const page = await open(browser, report("too small", BIG, ...options.slice(0, 4)), "allocator");
    const figure = (name) => bytesOf(page, `[data-figure='${name}']`);
    assert.match(await page.locator("#view").innerText(), /device with space for all/);
    await page.getByRole("button", { name: "Out of memory" }).click();
    await settled(page);
    assert.equal(await figure("reserved"), oom.reserved_bytes);
    assert.equal(await figure("in blocks"), oom.allocated_bytes);
    const largest = await figure("largest free piece");
    assert.ok(largest < oom.requested_bytes, `${largest} of ${oom.requested_bytes}`);
    assert.match(await page.locator(".moment .status").innerText(), /^At request .* cannot be allocated/);
    // Peak shows the same moment; moving on shows the run again.
    await show(page, "peak");
    assert.match(await page.locator("#frames-shown").innerText(), /, at request/);
    await page.keyboard.press(",");
    await settled(page);
    assert.match(await page.locator("#frames-shown").innerText(), /, after request/);
    assert.deepEqual(page.problems, []);
    await page.close();
  });

  test("the state of a recorded one is shown", async () => {
    const snapshot = path.join(folder, "short.pickle");
    xmem("replay", GPT2, ...short, "--snapshot", snapshot, "--exit-zero");
    const page = await open(browser, report("recorded short", snapshot, ...DEVICE), "allocator");
    await page.getByRole("button", { name: "Recorded out of memory" }).click();
    await settled(page);
    const panel = await page.getByRole("region", { name: "Recorded out of memory" }).innerText();
    const { requested_bytes: requested, free_bytes: free } = ask();
    assert.ok(panel.includes(`${words(requested)} requested`) && panel.includes(`${words(free)} were free`), panel);
    await show(page, "timeline");
    assert.deepEqual(page.problems, []);
    await page.close();
  });
});

describe("tables of blocks", () => {
  test("blocks that differ in nothing are one row, and its button chooses each of them", async () => {
    const page = await open(browser, pageOf(BIG), "peak");
    const row = page.locator(".blocks tbody tr", { hasText: "optimizer state" }).filter({ hasText: /^9\.00 MiB/ });
    assert.match(await row.innerText(), /^9\.00 MiB\s+48\s+432\.00 MiB\s+optimizer state/);
    const addresses = new Set();
    for (let press = 0; press < 3; press++) {
      await row.locator("button").click();
      await settled(page);
      addresses.add((await page.locator(".panel").innerText()).match(/0x[0-9a-f]+/)[0]);
    }
    assert.equal(addresses.size, 3);
    await page.close();
  });
});

describe("peak", () => {
  test("frames zoom, by keys and with every kind of frame", async () => {
    const page = await open(browser, pageOf(RESNET), "peak");
    for (const key of ["Stack", "Line", "Operator", "Role", "Module"]) {
      await page.locator(".choice label", { hasText: key }).click();
      assert.ok((await page.locator(".frame-node").count()) > 2, key);
    }
    await page.locator(".frame-node").first().focus();
    await page.keyboard.press("ArrowDown");
    assert.match(await page.evaluate(() => document.activeElement.textContent), /^ResNet_0/);
    await page.keyboard.press("Enter");
    assert.match(await page.locator("#frames-shown").innerText(), /^ResNet_0: /);
    await page.close();
  });

  test("the downloaded table adds up to the peak", async () => {
    const page = await open(browser, pageOf(RESNET), "peak");
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("#download")]);
    const lines = readFileSync(await download.path(), "utf8").trim().split("\r\n").slice(1);
    const sum = lines.reduce((sum, line) => sum + Number(line.split(",")[0]), 0);
    assert.equal(sum, answer(RESNET).peak.allocated_bytes);
    await page.close();
  });
});

describe("rules", () => {
  test("blocks that a rule drops are listed one by one", async () => {
    const page = await open(browser, pageOf(GPT2), "rules");
    const dropping = answer(GPT2).rules.filter(({ dropped }) => dropped.blocks > 0);
    assert.ok(dropping.length > 3);
    for (const { rule, dropped } of dropping) {
      await page.getByRole("button", { name: rule, exact: true }).click();
      await settled(page);
      const table = page.locator("#rule-blocks table").last();
      const caption = await table.locator("caption").textContent();
      assert.ok(caption.includes(`${dropped.blocks.toLocaleString("en")} recorded block`) && caption.includes(rule), caption);
      assert.equal(await table.locator("tbody tr").count(), Math.min(60, dropped.blocks), rule);
    }
    assert.deepEqual(page.problems, []);
    await page.close();
  });
});

describe("compare", () => {
  test("differences are those of the JSON answers", async () => {
    const page = await open(browser, compared(), "compare");
    const [one, other] = [answer(RESNET).peak, answer(GPT2).peak];
    const shown = () => page.locator("#compared [data-bytes]").evaluateAll((all) => all.slice(0, 3).map((element) => Number(element.dataset.bytes)));
    const figures = ["allocated_bytes", "reserved_bytes", "device_bytes"];
    assert.deepEqual(await shown(), figures.map((figure) => other[figure] - one[figure]));
    assert.match(await page.locator("#divergence").innerText(), /The runs differ from the first allocation on/);
    await page.selectOption("#run", "1");
    await settled(page);
    assert.deepEqual(await shown(), figures.map((figure) => one[figure] - other[figure]));
    await show(page, "overview");
    assert.equal(await bytesOf(page, "#figure-allocated"), other.allocated_bytes);
    await page.locator("#runs button").click();
    assert.equal(await bytesOf(page, "#figure-allocated"), one.allocated_bytes);
    assert.deepEqual(page.problems, []);
    await page.close();
  });

  test("what the other run has allocated stays within the plot", async () => {
    const page = await open(browser, compared(), "timeline");
    const [one, other] = [answer(RESNET).peak.allocated_bytes, answer(GPT2).peak.allocated_bytes];
    await page.selectOption("#run", one > other ? "1" : "0");
    await settled(page);
    const largest = await page.locator(".plot").getAttribute("data-top");
    assert.ok(Number(largest) > Math.max(one, other), `${largest}: ${one}, ${other}`);
    await page.close();
  });

  test("every device has its figures and their range in the overview", async () => {
    const names = ["rtx3060-12g", "t4-16g", "l4-24g"];
    const page = await open(browser, report("devices", RESNET, ...names.flatMap((name) => ["--device", name])));
    const rows = await page.locator("#runs tbody tr").allInnerTexts();
    assert.equal(rows.length, names.length);
    for (const [at, name] of names.entries()) {
      const { peak, range } = JSON.parse(xmem("replay", RESNET, "--device", name, "--cudnn", "model", "--format", "json", "--exit-zero"));
      for (const figure of ["allocated_bytes", "reserved_bytes", "device_bytes"]) {
        assert.ok(rows[at].includes(words(peak[figure])), `${name} ${figure}: ${rows[at]}`);
        const { low, high } = range[figure];
        assert.ok(low === high || rows[at].includes(between(peak[figure], low, high)), `${name} ${figure}: ${rows[at]}`);
      }
    }
    await page.close();
  });

  test("one recording with other options of the allocator asks for the same memory", async () => {
    const file = report("options", RESNET, ...DEVICE, "--against-alloc-conf", "expandable_segments:True");
    const page = await open(browser, file, "compare");
    assert.match(await page.locator("#divergence").innerText(), /Both runs ask for the same memory/);
    assert.equal(await page.locator("#other option").count(), 1);
    await page.close();
  });
});

describe("settings and plans", () => {
  test("what other settings change is what their answers say", async () => {
    const page = await open(browser, report("oom", GPT2, "--capacity", "600MiB"));
    const ask = (...options) => JSON.parse(xmem("replay", GPT2, "--capacity", "600MiB", "--cudnn", "model", ...options, "--format", "json", "--exit-zero"));
    const usual = ask("--min-capacity");
    for (const options of ["--alloc-conf expandable_segments:True", "--zero-grad pos0", "--optimizer-impl fused"]) {
      const shown = page.locator(`#fitting [data-options="${options}"]`);
      const change = ask(...options.split(" ")).peak.device_bytes - usual.peak.device_bytes;
      assert.equal((await shown.count()) > 0 ? Number(await shown.getAttribute("data-bytes")) : 0, change, options);
    }
    assert.ok((await page.locator("#fitting").innerText()).includes(`${words(usual.min_capacity_bytes)} of memory`));
    await page.close();
  });

  test("a plan is shown beside the allocator", async () => {
    const page = await open(browser, report("plan", RESNET, ...DEVICE, "--plan"), "plan");
    const { best, allocators } = JSON.parse(xmem("plan", RESNET, ...DEVICE, "--cudnn", "model", "--format", "json"));
    assert.equal(await bytesOf(page, "[data-figure=planned]"), best.peak_bytes);
    assert.equal(await bytesOf(page, "[data-figure='reserved by the allocator']"), allocators[0].reserved_bytes);
    const map = await page.locator(".heap").first().boundingBox();
    await page.mouse.move(map.x + map.width / 2, map.y + map.height - 4);
    assert.match(await page.locator(".tooltip:visible").innerText(), /Offset/);
    assert.deepEqual(page.problems, []);
    await page.close();
  });
});

describe("offloading", () => {
  const STEP = "networks/resnet32.json.zst";
  const offload = () => report("offload", STEP, ...DEVICE, "--offload", "dymem,vdnn-all");

  test("policies have the figures of xmem offload, and their memory is a heap map", async () => {
    const page = await open(browser, offload(), "offload");
    const options = ["--policy", "dymem,vdnn-all", "--placement", "caching,bestfit", "--cudnn", "model", "--format", "json"];
    const { rows } = JSON.parse(xmem("offload", STEP, ...DEVICE, ...options));
    const shown = await page.locator("#policies [data-figure=peak]").evaluateAll((all) => all.map((element) => Number(element.dataset.bytes)));
    assert.deepEqual(shown, rows.map((row) => row.peak_bytes));
    assert.equal(shown.length, 6);
    const before = await page.locator("#offload-shown").innerText();
    await page.locator("#policies [data-policy='0']").press("Enter");
    await settled(page);
    assert.match(await page.locator("#offload-shown").innerText(), /none, caching/);
    assert.notEqual(await page.locator("#offload-shown").innerText(), before);
    await page.locator(".heap").first().scrollIntoViewIfNeeded();
    const map = await page.locator(".heap").first().boundingBox();
    // The parameters lie at the bottom for the whole step.
    await page.mouse.move(map.x + map.width / 2, map.y + map.height - 1);
    assert.match(await page.locator(".tooltip:visible").innerText(), /On the device/);
    assert.deepEqual(page.problems, []);
    await page.close();
  });

  test("every policy can be chosen", async () => {
    const page = await open(browser, report("all policies", STEP, ...DEVICE, "--offload", "all"), "offload");
    const policies = await page.locator("#policies tbody tr").count();
    for (let policy = 0; policy < policies; policy++) {
      await page.locator(`#policies [data-policy="${policy}"]`).click();
      await settled(page);
      const [name, placement] = await page.locator(`#policies tbody tr:nth-child(${policy + 1}) td`).allInnerTexts();
      assert.equal(await page.locator("#offload-shown").innerText(), `Shown: ${name}, ${placement}`);
      assert.ok((await page.locator(".scroll table").last().locator("tbody tr").count()) > 0);
    }
    assert.deepEqual(page.problems, []);
    await page.close();
  });

  test("a recording without iterations is beside one with a plan and policies", async () => {
    const folder = "bert_fp16_scaler_adamw";
    const file = report("with snapshot", `${folder}/trace.json.zst`, `${folder}/snapshot.pickle.zst`, ...DEVICE, "--plan", "--offload", "none,dymem");
    const page = await open(browser, file, "offload");
    await page.selectOption("#run", "1");
    await settled(page);
    assert.match(await page.locator("#view").innerText(), /no policies of this run/);
    await show(page, "plan");
    assert.match(await page.locator("#view").innerText(), /no plan of this run/);
    assert.deepEqual(page.problems, []);
    await page.close();
  });
});

describe("hostile names", () => {
  const MARKUP = ["</script><script>window.hacked = 1</script>", "<img src=x onerror='window.hacked = 2'>", "javascript:window.hacked=3", '"><svg onload=window.hacked=4>', '=HYPERLINK("x")'];

  test("nothing from a trace runs, and the policy lets no other script run", async () => {
    const events = MARKUP.flatMap((name, at) => [
      { ph: "X", cat: "cpu_op", name, pid: 1, tid: 1, ts: 10 * at + 1, dur: 8 },
      { ph: "i", cat: "cpu_instant_event", name: "[memory]", pid: 1, tid: 1, ts: 10 * at + 3, args: { Bytes: 83886080 + 512 * at, Addr: 64 * (at + 1), "Device Type": 0, "Device Id": -1 } },
    ]);
    const trace = path.join(folder, "<script>window.hacked=5<_script>.json");
    writeFileSync(trace, JSON.stringify({ traceEvents: events }));
    const file = report("hostile", trace, ...DEVICE);
    const text = readFileSync(file, "utf8");
    assert.ok(MARKUP.every((name) => !text.includes(name)));
    const page = await open(browser, file);
    let found = "";
    for (const view of VIEWS) {
      await show(page, view);
      found += await page.locator("#view").innerText();
    }
    assert.ok(MARKUP.slice(0, 4).every((name) => found.includes(name)), found);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.deepEqual(page.problems, []);
    await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "window.hacked = 6";
      const image = document.createElement("img");
      image.setAttribute("onerror", "window.hacked = 7");
      image.src = "x:";
      document.body.append(script, image);
    });
    await settled(page);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.ok(page.problems.some((problem) => /Content Security Policy/.test(problem)), page.problems.join("\n"));
    await page.close();
  });
});

describe("odd recordings", () => {
  const ODD = {
    "no memory": [],
    "one block": [[512, "aten::empty"]],
    "a huge block and an endless name": [[2 ** 60, "aten::empty"], [4096, "x".repeat(100_000)]],
  };

  for (const [name, blocks] of Object.entries(ODD)) {
    test(`every view of a recording with ${name} opens`, async () => {
      const events = blocks.flatMap(([bytes, op], at) => [
        { ph: "X", cat: "cpu_op", name: op, pid: 1, tid: 1, ts: 10 * at + 1, dur: 8 },
        { ph: "i", cat: "cpu_instant_event", name: "[memory]", pid: 1, tid: 1, ts: 10 * at + 3, args: { Bytes: bytes, Addr: 64 * (at + 1), "Device Type": 0, "Device Id": -1 } },
      ]);
      const trace = path.join(folder, `${name}.json`);
      writeFileSync(trace, JSON.stringify({ traceEvents: [{ ph: "X", cat: "cpu_op", name: "aten::mul", pid: 1, tid: 1, ts: 0.5, dur: 0.1 }, ...events] }));
      const page = await open(browser, report(name, trace, ...DEVICE));
      for (const view of VIEWS) {
        await show(page, view);
        const { height } = await page.locator("#view").boundingBox();
        assert.ok(height < 20_000, `${view}: ${height}`);
        assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 1200, view);
      }
      assert.deepEqual(page.problems, []);
      await page.close();
    });
  }
});

const EVERY_VIEW = [...VIEWS, "plan", "offload", "compare"];
const allViews = () => report("all views", RESNET, GPT2, ...DEVICE, "--plan", "--offload", "none,dymem");

describe("accessibility", () => {
  test("every picture has a name or is hidden, and its figures are in a table", async () => {
    const page = await open(browser, allViews());
    for (const view of EVERY_VIEW) {
      await show(page, view);
      const pictures = page.locator("#view canvas, #view .treemap, #view .icicle");
      const unnamed = await pictures.evaluateAll((all) => all.filter((one) => !one.getAttribute("aria-label") && one.getAttribute("aria-hidden") !== "true").map((one) => one.className));
      assert.deepEqual(unnamed, [], view);
      assert.ok((await page.locator("#view table").count()) > 0, view);
      const nameless = await page.locator("#view table").evaluateAll((all) => all.filter((one) => !one.caption?.textContent).length);
      assert.equal(nameless, 0, view);
    }
    await show(page, "timeline");
    await page.locator("summary", { hasText: "The picture as a table" }).press("Enter");
    const { peak } = answer(RESNET);
    const table = await page.locator(".figures-of table").innerText();
    assert.ok(table.includes(words(peak.allocated_bytes)) && table.includes("optimizer state"), table);
    await show(page, "compare");
    await page.locator("summary", { hasText: "The curves as a table" }).press("Enter");
    const curves = await page.locator("details table").first().innerText();
    assert.ok(curves.includes(words(peak.allocated_bytes)), curves);
    await page.close();
  });

  test("the pieces of a segment are reached by keys", async () => {
    const page = await open(browser, pageOf(RESNET), "allocator");
    await page.locator(".columns button").first().press("Enter");
    await settled(page);
    const pieces = await page.locator("#pieces tbody tr").allInnerTexts();
    assert.ok(pieces.length > 1 && pieces.some((row) => row.includes("free")), pieces.join("\n"));
    await page.locator("#pieces button").first().press("Enter");
    await settled(page);
    assert.equal(await page.locator(".panel h3").count(), 1);
    assert.equal((await page.locator("#pieces tbody tr").allInnerTexts()).length, pieces.length);
    await page.close();
  });

  test("views fit a narrow window", async () => {
    const page = await open(browser, allViews());
    await page.setViewportSize({ width: 390, height: 800 });
    for (const view of EVERY_VIEW) {
      await show(page, view);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, view);
    }
    await page.close();
  });

  test("a browser without a canvas has the tables", async () => {
    const page = await browser.newPage();
    const problems = [];
    page.on("pageerror", (error) => problems.push(String(error)));
    await page.addInitScript(() => {
      HTMLCanvasElement.prototype.getContext = () => null;
    });
    await page.goto(`file://${allViews()}`);
    await page.waitForSelector("#view[data-view]");
    for (const view of EVERY_VIEW) {
      await show(page, view);
      assert.ok((await page.locator("#view tbody tr").count()) > 0, view);
    }
    assert.deepEqual(problems, []);
    await page.close();
  });

  for (const scheme of ["light", "dark"]) {
    test(`axe finds nothing serious in any view, ${scheme}`, async () => {
      const page = await open(browser, allViews(), "overview", scheme);
      await page.evaluate(axe);
      for (const view of EVERY_VIEW) {
        await show(page, view);
        const { violations } = await page.evaluate(() => window.axe.run(document));
        const serious = violations.filter((violation) => ["serious", "critical"].includes(violation.impact));
        const told = serious.map(({ id, nodes }) => `${view}: ${id}: ${nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary}`).join(" ")}`);
        assert.deepEqual(told, []);
      }
      await page.close();
    });
  }

  test("every view can be printed", async () => {
    const page = await open(browser, allViews());
    for (const view of EVERY_VIEW) {
      await show(page, view);
      const pdf = await page.pdf();
      assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
      // Nothing is beside the paper.
      await page.emulateMedia({ media: "print" });
      await page.setViewportSize({ width: 720, height: 1000 });
      await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 720, view);
      assert.equal(await page.locator("#view details:not([open])").count(), 0, view);
      await page.evaluate(() => dispatchEvent(new Event("afterprint")));
      await page.emulateMedia({ media: "screen" });
    }
    await page.close();
  });

  // A canvas above another one is opaque on paper: the areas of the timeline were not printed.
  test("the timeline on paper is one canvas, with areas and lines", async () => {
    const page = await open(browser, pageOf(RESNET), "timeline");
    await page.emulateMedia({ media: "print" });
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    await settled(page);
    const shown = await page.locator(".plot canvas").evaluateAll((all) => all.filter((canvas) => canvas.checkVisibility()).map((canvas) => canvas.className));
    assert.deepEqual(shown, ["base"]);
    const colors = await page.evaluate(() => {
      const canvas = document.querySelector(".plot .base");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const counts = {};
      for (let at = 0; at < data.length; at += 4) counts[data.slice(at, at + 4).join(" ")] = (counts[data.slice(at, at + 4).join(" ")] ?? 0) + 1;
      return counts;
    });
    // The color of parameters, and that of the line of reserved memory.
    assert.ok(colors["75 63 158 255"] > 1000 && colors["28 30 33 255"] > 100, JSON.stringify(colors).slice(0, 2000));
    await page.close();
  });

  test("paper is light, whatever the theme", async () => {
    const page = await open(browser, pageOf(RESNET), "allocator", "dark");
    // The gray of a free piece, which differs between the themes.
    const light = () => page.evaluate(() => {
      const canvas = document.querySelector(".map");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let at = 0; at < data.length; at += 4) if (data[at] > 230 && data[at + 1] > 230 && data[at + 2] > 220 && data[at + 3] === 255) count++;
      return [document.documentElement.dataset.theme, count > 500];
    });
    assert.deepEqual(await light(), ["dark", false]);
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    assert.deepEqual(await light(), ["light", true]);
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
    await settled(page);
    assert.deepEqual(await light(), ["dark", false]);
    await page.close();
  });
});

test("a recording of a GPU without phases claims none", async () => {
  const page = await open(browser, pageOf(SNAPSHOT), "timeline");
  assert.ok(!(await page.locator("#phase").isVisible()));
  for (const view of ["overview", "timeline", "peak"]) {
    await show(page, view);
    assert.ok(!/\binit\b/.test(await page.locator("#view").innerText()), view);
  }
  await page.close();
});

test("the page without its data is at most 1.5 MB", () => {
  const text = readFileSync(pageOf(RESNET), "utf8");
  const data = [...text.matchAll(/<script type="application\/octet-stream"[^>]*>([^<]*)<\/script>/g)];
  const without = text.length - data.reduce((sum, [, base64]) => sum + base64.length, 0);
  assert.ok(data.length === 2 && without <= 1_500_000, without.toString());
});

describe("pictures", () => {
  for (const [view, scheme] of [["overview", "light"], ["timeline", "dark"], ["allocator", "light"], ["peak", "light"]]) {
    test(`${view} looks as it did, ${scheme}`, async () => {
      const page = await open(browser, pageOf(RESNET), view, scheme);
      const picture = await page.screenshot();
      await page.close();
      const file = path.join(screens, `${view}.png`);
      if (process.env.UPDATE_EXPECT) {
        writeFileSync(file, picture);
        return;
      }
      assert.ok(existsSync(file), `no ${file}: UPDATE_EXPECT=1 cargo xtask test-web`);
      const share = await differing(browser, picture, readFileSync(file));
      // Fonts differ between machines; a lost plot, another color or another layout changes more.
      assert.ok(share < 0.06, `${(100 * share).toFixed(1)} % of the picture differs`);
    });
  }
});
