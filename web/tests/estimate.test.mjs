// The page of `xmem estimate`: its answers are those of the command line. Started by `cargo xtask test-web`.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bytesOf, close, folder, launch, settled } from "./browser.mjs";
import { carried, imported, worker } from "./program.mjs";

const graphs = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../traces/graphs");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The exit codes of verdicts. */
const VERDICTS = [0, 1, 4];

/** What the command line prints. */
function printed(graph, ...options) {
  const args = ["estimate", nameOf(graph), ...options, "--cudnn", "model", "--format", "json"];
  const ran = spawnSync(process.env.XMEM, args, { cwd: graphs, encoding: "utf8", maxBuffer: 1 << 28 });
  assert.ok(VERDICTS.includes(ran.status), ran.stderr);
  return ran.stdout;
}

/** The file of a graph: an archive of torch.export, if the name has no ending. */
const nameOf = (graph) => (graph.endsWith(".onnx") ? graph : `${graph}.pt2`);

const bytesOfGraph = (graph) => readFileSync(path.join(graphs, nameOf(graph)));

/** A copy in a buffer of its own. */
const buffer = (bytes) => bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);

describe("module", () => {
  const CASES = [
    ["networks_resnet50", { device: "t4-16g" }, ["-d", "t4-16g"]],
    ["networks_resnet50", { device: "rtx3070-8g", batch: 64, autocast: "float16" }, ["-d", "rtx3070-8g", "--batch", "64", "--autocast", "float16"]],
    ["big_gpt2s_adam_b6", { device: "a100-40g", optimizer: "adamw:fused", autocast: "bfloat16" }, ["-d", "a100-40g", "--optimizer", "adamw:fused", "--autocast", "bfloat16"]],
    ["big_gpt2s_adam_b6", { device: "rtx3060-12g", batch: 8, checkpoints: ["h.*"] }, ["-d", "rtx3060-12g", "--batch", "8", "--checkpoint", "h.*"]],
    ["vit_b_16_adamw", { device: "l4-24g", training: false, dtype: "bfloat16", batch: 300 }, ["-d", "l4-24g", "--inference", "--dtype", "bfloat16", "--batch", "300"]],
    ["gru_seq2seq_nadam", { device: "v100-16g", optimizer: "sgd:momentum", accumulation: 3 }, ["-d", "v100-16g", "--optimizer", "sgd:momentum", "--accumulation", "3"]],
    ["whisper_ampbf16_adamw", { device: "h100-80g" }, ["-d", "h100-80g"]],
    ["unet_adam", { device: "rtx4060-8g" }, ["-d", "rtx4060-8g"]],
    ["onnx/resnet18.dynamo.onnx", { device: "t4-16g", optimizer: "sgd:momentum", loss: "cross-entropy", batch: 16 }, ["-d", "t4-16g", "--optimizer", "sgd:momentum", "--loss", "cross-entropy", "--batch", "16"]],
    ["onnx/gpt2.dynamo.onnx", { device: "l4-24g", training: false, batch: 4 }, ["-d", "l4-24g", "--inference", "--batch", "4"]],
  ];

  for (const [graph, settings, options] of CASES) {
    test(`the answer about ${graph} with ${options.join(" ")} is the command line's, to the byte`, async () => {
      const ask = await worker();
      const opened = await ask({ ask: "open", name: nameOf(graph), bytes: buffer(bytesOfGraph(graph)) });
      assert.ok("text" in opened, opened.failed);
      const { text, failed } = await ask({ ask: "answer", settings });
      assert.equal(text, printed(graph, ...options), failed);
    });
  }

  test("it imports nothing: neither files nor clocks nor random numbers", async () => {
    const compiled = await WebAssembly.compile(carried("data-module"));
    assert.deepEqual(WebAssembly.Module.imports(compiled), []);
  });

  test("after it has stopped, a new instance goes on with the graph that was open", async () => {
    const ask = await worker();
    await ask({ ask: "open", name: "mlp.pt2", bytes: buffer(bytesOfGraph("mlp_adam")) });
    const before = await ask({ ask: "answer", settings: { device: "t4-16g" } });
    // More than 32 bits can address.
    const { failed } = await ask({ ask: "open", name: "large.pt2", bytes: new ArrayBuffer(2 ** 31) });
    assert.match(failed, /^xmem has stopped: .*capacity overflow/s);
    const after = await ask({ ask: "answer", settings: { device: "t4-16g" } });
    assert.equal(after.text, before.text);
  });

  test("what is refused is said", async () => {
    const ask = await worker();
    const fails = async (request, message) => assert.match((await ask(request)).failed, message);
    await fails({ ask: "answer", settings: { device: "t4-16g" } }, /no graph is open/);
    await ask({ ask: "open", name: "mlp.pt2", bytes: buffer(bytesOfGraph("mlp_adam")) });
    await fails({ ask: "answer", settings: { device: "t5" } }, /unknown device `t5`/);
    await fails({ ask: "answer", settings: { device: "t4-16g", optimizer: "adamm" } }, /unknown optimizer `adamm`/);
    await fails({ ask: "answer", settings: { device: "t4-16g", length: 9 } }, /length of sequences cannot be changed/);
    await fails({ ask: "answer", settings: { device: "t4-16g", card: 1 } }, /unknown field `card`/);
  });
});

describe("large archives", async () => {
  const { withoutWeights } = await imported("estimate/slim.ts");

  /** A zip file as Python writes it, with a weight of so many bytes before what is read. */
  function written(weight) {
    const program = `
import sys, zipfile
source = zipfile.ZipFile(sys.argv[1])
with zipfile.ZipFile(sys.argv[2], "w", zipfile.ZIP_STORED) as out:
    with out.open("model/data/weights/weight_0", "w", force_zip64=True) as weight:
        weight.write(bytes(int(sys.argv[3])))
    for name in source.namelist():
        if name.endswith(".json"):
            out.writestr(name, source.read(name), zipfile.ZIP_DEFLATED)
`;
    const to = path.join(folder, "large.pt2");
    const ran = spawnSync("python3", ["-c", program, path.join(graphs, "mlp_adam.pt2"), to, weight.toString()], { encoding: "utf8" });
    assert.equal(ran.status, 0, ran.stderr);
    return readFileSync(to);
  }

  test("of a file with weights, the rest is read, and gives the same answer", async () => {
    const whole = written(40 << 20);
    const slim = await withoutWeights(new Blob([whole]));
    assert.ok(slim.byteLength < 1 << 17, `${slim.byteLength} bytes`);
    const ask = await worker();
    const answers = [];
    for (const bytes of [slim, buffer(whole)]) {
      const opened = await ask({ ask: "open", name: "large.pt2", bytes });
      assert.ok("text" in opened, opened.failed);
      answers.push((await ask({ ask: "answer", settings: { device: "t4-16g" } })).text);
    }
    assert.equal(answers[0], answers[1]);
  });

  test("a small file and what is no archive are as they were", async () => {
    for (const bytes of [bytesOfGraph("mlp_adam"), Buffer.alloc(20 << 20, 7)]) {
      assert.ok(Buffer.from(await withoutWeights(new Blob([bytes]))).equals(bytes));
    }
  });

  test("a large file that was cut off is refused", async () => {
    const cut = written(40 << 20).subarray(0, 30 << 20);
    await assert.rejects(withoutWeights(new Blob([cut])), /not copied whole/);
  });
});

describe("page", () => {
  let browser;
  before(async () => {
    browser = await launch({ width: 1280, height: 900 });
  });
  after(() => close(browser));

  /** Opens the page. Whatever goes wrong in it, and every request, is in `problems`. */
  async function open(scheme = "light") {
    const page = await browser.newPage();
    await page.emulateMedia({ colorScheme: scheme });
    page.problems = [];
    page.on("console", (message) => message.type() === "error" && page.problems.push(message.text()));
    page.on("pageerror", (error) => page.problems.push(String(error)));
    page.on("request", (request) => /^(blob|data):/.test(request.url()) || request.isNavigationRequest() || page.problems.push(`request: ${request.url()}`));
    await page.goto(pathToFileURL(process.env.PAGE).href);
    await page.waitForSelector("html[data-ready]");
    return page;
  }

  /** Drops a file on the page. */
  async function drop(page, name, bytes) {
    const data = await page.evaluateHandle(([name, text]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], name));
      return transfer;
    }, [name, bytes.toString("base64")]);
    await page.dispatchEvent("#drop", "drop", { dataTransfer: data });
  }

  /** Waits for the answer to what was chosen last, and for the search for a batch size. */
  async function answered(page) {
    await page.waitForTimeout(100);
    await page.waitForSelector(".work:not([aria-busy])");
    await page.waitForFunction(() => document.querySelector("#batches")?.hidden !== false || document.querySelector("#largest")?.dataset.running === "false");
    await settled(page);
  }

  /** The figures are those of the command line. */
  async function agrees(page, graph, ...options) {
    const answer = JSON.parse(printed(graph, ...options));
    for (const figure of ["allocated", "reserved", "device"]) {
      assert.equal(await bytesOf(page, `#figure-${figure}`), answer.peak[`${figure}_bytes`], figure);
    }
    assert.equal(await page.innerText("#summary"), answer.summary);
    assert.equal(await page.getAttribute(".verdict", "data-decision"), answer.decision);
    for (const [role, bytes] of Object.entries(answer.by_role)) {
      if (bytes > 0) assert.equal(await bytesOf(page, `#roles [data-role=${role}]`), bytes, role);
    }
    return answer;
  }

  test("a graph that is dropped is estimated, and the answer follows card, batch and optimizer", async () => {
    const page = await open();
    const graph = "networks_resnet50";
    await drop(page, `${graph}.pt2`, bytesOfGraph(graph));
    await page.waitForSelector("#summary");
    await answered(page);
    await agrees(page, graph, "-d", "a100-40g");
    await page.selectOption("#device", "rtx3070-8g");
    await answered(page);
    await agrees(page, graph, "-d", "rtx3070-8g");
    await page.fill("#batch", "96");
    await answered(page);
    await agrees(page, graph, "-d", "rtx3070-8g", "--batch", "96");
    await page.selectOption("#optimizer", "sgd:momentum");
    await answered(page);
    await agrees(page, graph, "-d", "rtx3070-8g", "--batch", "96", "--optimizer", "sgd:momentum");
    const command = await page.innerText("#command");
    assert.equal(command, `xmem estimate ${graph}.pt2 --device rtx3070-8g --batch 96 --optimizer sgd:momentum --cudnn model`);
    await page.selectOption("#purpose", "inference");
    await answered(page);
    await agrees(page, graph, "-d", "rtx3070-8g", "--batch", "96", "--inference");
    assert.deepEqual(page.problems, []);
    await page.close();
  });

  test("the largest batch that fits fits on the command line, and the next one does not", async () => {
    const page = await open();
    await page.click("#try-resnet50");
    await page.waitForSelector("#summary");
    await page.selectOption("#device", "rtx3070-8g");
    await answered(page);
    const largest = Number(await page.getAttribute("#largest", "data-largest"));
    assert.ok(largest > 1);
    const verdicts = [largest, largest + 1].map((batch) => JSON.parse(printed("networks_resnet50", "-d", "rtx3070-8g", "--batch", batch.toString())).verdict);
    assert.deepEqual(verdicts, ["fits", "does_not_fit"]);
    assert.ok(await page.locator("#batches .point").count() > 5);
    assert.deepEqual(page.problems, []);
    await page.close();
  });

  test("a slider chooses a batch by keys, and examples are graphs of this repository", async () => {
    const page = await open();
    await page.click("#try-gpt2");
    await page.waitForSelector("#summary");
    const before = Number(await page.inputValue("#batch"));
    await page.focus("#batch-slider");
    for (let press = 0; press < 16; press++) await page.keyboard.press("ArrowRight");
    await answered(page);
    const batch = Number(await page.inputValue("#batch"));
    assert.equal(batch, 2 * before);
    await agrees(page, "big_gpt2s_adam_b6", "-d", "a100-40g", "--batch", batch.toString());
    assert.deepEqual(page.problems, []);
    await page.close();
  });

  test("what is no graph or a damaged one is named, and what was open stays", async () => {
    const page = await open();
    await drop(page, "notes.txt", Buffer.from("no graph"));
    await page.waitForSelector("#problem:not([hidden])");
    assert.match(await page.innerText("#problem"), /^notes\.txt: .*not a graph/);
    await page.click("#try-resnet50");
    await page.waitForSelector("#summary");
    assert.ok(!(await page.isVisible("#problem")));
    const bytes = bytesOfGraph("mlp_adam");
    for (const [name, damaged] of [["cut.pt2", bytes.subarray(0, bytes.length >> 1)], ["changed.pt2", Buffer.from(bytes).fill(0x55, 300, 1500)]]) {
      await drop(page, name, damaged);
      await page.waitForFunction((name) => document.querySelector("#problem")?.textContent?.startsWith(name), name);
      assert.match(await page.innerText("#problem"), /cannot read the archive/);
      assert.match(await page.innerText("#about"), /^resnet50\.pt2/);
    }
    assert.deepEqual(page.problems, []);
    await page.close();
  });

  test("a setting that does not go with the graph is said in the place of the answer", async () => {
    const page = await open();
    await page.click("#try-resnet50");
    await page.waitForSelector("#summary");
    await page.fill("#batch", "2147483647");
    await page.waitForSelector("#failure");
    assert.match(await page.innerText("#failure"), /larger than any machine's memory/);
    await page.fill("#batch", "8");
    await page.waitForSelector("#summary");
    await answered(page);
    await agrees(page, "networks_resnet50", "-d", "a100-40g", "--batch", "8");
    await page.close();
  });

  test("nothing can be sent from the page", async () => {
    const page = await open();
    const sent = await page.evaluate(() => fetch("https://localhost/").then(() => "sent", () => "refused"));
    assert.equal(sent, "refused");
    assert.ok(page.problems.some((problem) => problem.includes("Content Security Policy")), page.problems.join("\n"));
    await page.close();
  });

  for (const scheme of ["light", "dark"]) {
    for (const width of [1280, 400]) {
      test(`the page is accessible and is not wider than ${width} pixels, ${scheme}`, async () => {
        const page = await open(scheme);
        await page.setViewportSize({ width, height: 900 });
        await page.click("#try-resnet50");
        await page.waitForSelector("#summary");
        await answered(page);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.ok(wide <= 0, `${wide} pixels too wide`);
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => globalThis.axe.run());
        assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`), []);
        await page.close();
      });
    }
  }
});
