// Builds the pages' programs and styles from src.
//
//   node build.mjs [--to FOLDER]                  report.js and report.css, into dist
//   node build.mjs --estimate MODULE --to FILE    the page of `xmem estimate`, with the WebAssembly module
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import path from "node:path";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";

const here = path.dirname(fileURLToPath(import.meta.url));
const { values } = parseArgs({ options: { to: { type: "string" }, estimate: { type: "string" } } });

const PROGRAM = { absWorkingDir: here, bundle: true, minify: true, charset: "utf8", format: "iife", target: ["es2022"], legalComments: "none", logLevel: "warning" };
const STYLE = { absWorkingDir: here, bundle: true, minify: true, charset: "utf8", target: ["chrome111", "firefox113", "safari16.4"], logLevel: "warning" };

/** Graphs of recorded jobs that the page offers to try. */
const EXAMPLES = [
  { id: "resnet50", title: "ResNet-50", file: "networks_resnet50" },
  { id: "gpt2", title: "GPT-2", file: "big_gpt2s_adam_b6" },
];

if (values.estimate) await writeFile(path.resolve(values.to), await estimatePage(await readFile(path.resolve(values.estimate))));
else {
  const outdir = values.to ? path.resolve(values.to) : path.join(here, "dist");
  await build({ ...PROGRAM, entryPoints: { report: "src/main.ts" }, outdir });
  await build({ ...STYLE, entryPoints: { report: "src/report.css" }, outdir });
}

/** One self-contained file. Its policy admits this script, this style, and a worker that the script makes: no address can be
 * reached from it. */
async function estimatePage(module) {
  const script = await text({ ...PROGRAM, entryPoints: ["src/estimate/main.ts"] });
  const worker = await text({ ...PROGRAM, entryPoints: ["src/estimate/worker.ts"] });
  const style = await text({ ...STYLE, entryPoints: ["src/estimate.css"] });
  const hash = (content) => `'sha256-${createHash("sha256").update(content).digest("base64")}'`;
  const policy = [
    "default-src 'none'",
    `script-src ${hash(script)} 'wasm-unsafe-eval'`,
    `style-src ${hash(style)}`,
    "worker-src blob:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  const element = (id, bytes, more = "") => `<script type="application/octet-stream" id="${id}"${more}>${Buffer.from(bytes).toString("base64")}</script>`;
  const packed = (bytes) => gzipSync(bytes, { level: 9 });
  const graphs = await Promise.all(
    EXAMPLES.map(async ({ id, title, file }) => element(`example-${id}`, await readFile(path.join(here, "../traces/graphs", `${file}.pt2`)), ` data-example="${title}"`)),
  );
  return [
    "<!DOCTYPE html>",
    '<html lang="en">',
    "<head>",
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    '<meta name="referrer" content="no-referrer">',
    "<title>xmem estimate</title>",
    `<style>${style}</style>`,
    "</head>",
    "<body>",
    "<noscript><p>This page needs JavaScript. `xmem estimate` prints the same figures as text.</p></noscript>",
    '<main id="page"><p class="view muted">Starting …</p></main>',
    ...graphs,
    element("data-worker", packed(worker)),
    element("data-module", packed(module)),
    `<script>${script}</script>`,
    "</body>",
    "</html>",
    "",
  ].join("\n");
}

/** What a build gives, as a text that can stand in HTML. */
async function text(options) {
  const { outputFiles } = await build({ ...options, write: false, outdir: here });
  const built = outputFiles[0].text;
  if (/<\/(script|style)|<!--|\r/i.test(built)) throw new Error(`${options.entryPoints[0]} cannot stand in HTML`);
  return built;
}
