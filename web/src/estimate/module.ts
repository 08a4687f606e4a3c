// The WebAssembly module: text and bytes instead of numbers. crates/xmem-web/src/exports.rs is the other side.

import type { Settings } from "./messages";

interface Exports {
  memory: WebAssembly.Memory;
  xmem_start(): void;
  xmem_input(length: number): number;
  xmem_output(): number;
  xmem_output_length(): number;
  xmem_catalog(): number;
  xmem_open(nameLength: number): number;
  xmem_answer(): number;
}

/** A call that the module refuses: the message says why. */
export class Refused extends Error {}

/** A call in which the module has stopped. Its instance cannot be used again. */
export class Stopped extends Error {}

export class Module {
  private readonly exports: Exports;

  constructor(compiled: WebAssembly.Module) {
    this.exports = new WebAssembly.Instance(compiled, {}).exports as unknown as Exports;
    this.exports.xmem_start();
  }

  catalog(): string {
    return this.call(() => this.exports.xmem_catalog());
  }

  open(name: string, bytes: Uint8Array): string {
    const text = new TextEncoder().encode(name);
    const room = this.room(text.length + bytes.length);
    room.set(text);
    room.set(bytes, text.length);
    return this.call(() => this.exports.xmem_open(text.length));
  }

  answer(settings: Settings): string {
    const text = new TextEncoder().encode(JSON.stringify(settings));
    this.room(text.length).set(text);
    return this.call(() => this.exports.xmem_answer());
  }

  private room(length: number): Uint8Array {
    const place = this.caught(() => this.exports.xmem_input(length)) >>> 0;
    return new Uint8Array(this.exports.memory.buffer, place, length);
  }

  private call(call: () => number): string {
    const status = this.caught(call);
    const text = this.output();
    if (status !== 0) throw new Refused(text);
    return text;
  }

  /** The result of a call, if the module does not stop in it. */
  private caught(call: () => number): number {
    try {
      return call();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Stopped(`xmem has stopped: ${this.output() || reason}`);
    }
  }

  private output(): string {
    const place = this.exports.xmem_output() >>> 0;
    return new TextDecoder().decode(new Uint8Array(this.exports.memory.buffer, place, this.exports.xmem_output_length()));
  }
}
