// The worker from the page's side: promises instead of messages.

import type { About, Catalog, GraphAnswer, Reply, Request, Settings } from "./messages";

type Asked = Request extends infer R ? (R extends { id: number } ? Omit<R, "id"> : never) : never;

export class Engine {
  private readonly worker: Worker;
  private readonly waiting = new Map<number, { done: (text: string) => void; failed: (error: Error) => void }>();
  private asked = 0;
  /** The milliseconds that the last request took in the worker. */
  took = 0;

  /** `program` is the script of the worker. */
  constructor(program: string) {
    const url = URL.createObjectURL(new Blob([program], { type: "text/javascript" }));
    this.worker = new Worker(url);
    URL.revokeObjectURL(url);
    this.worker.addEventListener("message", ({ data }: MessageEvent<Reply>) => {
      const one = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if ("failed" in data) one?.failed(new Error(data.failed));
      else {
        this.took = data.took;
        one?.done(data.text);
      }
    });
    this.worker.addEventListener("error", (event) => {
      for (const one of this.waiting.values()) one.failed(new Error(event.message || "the worker cannot be started"));
      this.waiting.clear();
    });
  }

  async start(module: ArrayBuffer): Promise<Catalog> {
    return JSON.parse(await this.ask({ ask: "start", module }, [module])) as Catalog;
  }

  async open(name: string, bytes: ArrayBuffer): Promise<About> {
    return JSON.parse(await this.ask({ ask: "open", name, bytes }, [bytes])) as About;
  }

  async answer(settings: Settings): Promise<GraphAnswer> {
    return JSON.parse(await this.ask({ ask: "answer", settings })) as GraphAnswer;
  }

  private ask(request: Asked, given: Transferable[] = []): Promise<string> {
    const id = ++this.asked;
    return new Promise((done, failed) => {
      this.waiting.set(id, { done, failed });
      this.worker.postMessage({ ...request, id }, given);
    });
  }
}
