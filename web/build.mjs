// Builds dist/report.js and dist/report.css from src. `node build.mjs --to FOLDER` writes elsewhere.
import { build } from "esbuild";
import { fileURLToPath } from "node:url";
import path from "node:path";

const here = path.dirname(fileURLToPath(import.meta.url));
const to = process.argv[2] === "--to" ? path.resolve(process.argv[3]) : path.join(here, "dist");

await build({
  absWorkingDir: here,
  entryPoints: { report: "src/main.ts" },
  outdir: to,
  bundle: true,
  minify: true,
  charset: "utf8",
  format: "iife",
  target: ["es2022"],
  legalComments: "none",
  logLevel: "warning",
});
await build({
  absWorkingDir: here,
  entryPoints: { report: "src/report.css" },
  outdir: to,
  bundle: true,
  minify: true,
  charset: "utf8",
  target: ["chrome111", "firefox113", "safari16.4"],
  logLevel: "warning",
});
