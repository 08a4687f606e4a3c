// The worker: holds the module with the graph, and answers one request after the other.

import type { Reply, Request } from "./messages";
import { Module, Stopped } from "./module";

let compiled: WebAssembly.Module | null = null;
let module: Module | null = null;
/** The graph that is open: an instance that has stopped is replaced by one that has opened it too. */
let opened: { name: string; bytes: Uint8Array } | null = null;

async function reply(request: Request): Promise<string> {
  if (request.ask === "start") {
    compiled = await WebAssembly.compile(request.module);
    module = new Module(compiled);
    return module.catalog();
  }
  if (!module) throw new Error("the module was not started");
  if (request.ask === "answer") return module.answer(request.settings);
  const bytes = new Uint8Array(request.bytes);
  const about = module.open(request.name, bytes);
  opened = { name: request.name, bytes };
  return about;
}

/** A new instance in place of one that has stopped. */
function restart(): void {
  if (!compiled) return;
  module = new Module(compiled);
  if (opened) module.open(opened.name, opened.bytes);
}

let last = Promise.resolve();

self.addEventListener("message", ({ data }: MessageEvent<Request>) => {
  last = last.then(async () => {
    const begun = performance.now();
    let answered: Reply;
    try {
      answered = { id: data.id, text: await reply(data), took: performance.now() - begun };
    } catch (error) {
      if (error instanceof Stopped) restart();
      answered = { id: data.id, failed: error instanceof Error ? error.message : String(error) };
    }
    self.postMessage(answered);
  });
});
