// Parts of the page of `xmem estimate` without a browser. PAGE names the page.

import { build } from "esbuild";
import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import vm from "node:vm";
import { gunzipSync } from "node:zlib";

const here = path.dirname(fileURLToPath(import.meta.url));

/** The exports of a module of src. */
export async function imported(file) {
  const options = { entryPoints: [path.join(here, "../src", file)], bundle: true, format: "esm", write: false, logLevel: "warning" };
  const { outputFiles } = await build(options);
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

/** The bytes that an element of the page holds. */
export function carried(id) {
  const page = readFileSync(process.env.PAGE, "utf8");
  const [, text] = page.match(new RegExp(`id="${id}"[^>]*>([^<]*)<`));
  return gunzipSync(Buffer.from(text, "base64"));
}

/** The worker of the page, in this process: asks and waits for the reply. */
export async function worker() {
  let take;
  let listener;
  const self = { addEventListener: (_, listens) => (listener = listens), postMessage: (reply) => take(reply) };
  vm.runInNewContext(carried("data-worker").toString(), { self, WebAssembly, TextEncoder, TextDecoder, Uint8Array, Error, performance });
  let id = 0;
  const ask = (request) =>
    new Promise((done) => {
      take = done;
      listener({ data: { id: ++id, ...request } });
    });
  const module = carried("data-module");
  await ask({ ask: "start", module: module.buffer.slice(module.byteOffset, module.byteOffset + module.length) });
  return ask;
}
