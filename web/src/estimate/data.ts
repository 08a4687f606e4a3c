// What the page carries: the module, the worker's program, and examples.

/** A small graph to begin with. */
export interface Example {
  id: string;
  title: string;
}

/** The examples, in the order of the page. */
export function examples(): Example[] {
  const elements = [...document.querySelectorAll<HTMLElement>("script[data-example]")];
  return elements.map((element) => ({ id: element.id.replace("example-", ""), title: element.dataset.example ?? "" }));
}

/** The bytes of an element: base64. */
export function bytesOf(id: string): Uint8Array<ArrayBuffer> {
  const text = atob(document.getElementById(id)?.textContent ?? "");
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}

/** The bytes of an element: base64 of what gzip has compressed. */
export async function unpacked(id: string): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytesOf(id)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
