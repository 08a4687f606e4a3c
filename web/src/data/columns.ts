// Columns of whole numbers: little-endian base-128 numbers, seven bits a byte, plain or as differences.

/** The description of a column in the head of the page. */
export interface ColumnHead {
  name: string;
  /** `plain`: each value; `delta`: the difference to the value before it, the sign in the lowest bit. */
  encoding: "plain" | "delta";
  count: number;
  bytes: number;
}

/** The bytes of a `<script>` element: base64 of a deflate stream. The element is emptied. */
export async function unpack(id: string): Promise<Uint8Array> {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no data named ${id}`);
  const packed = fromBase64((element.textContent ?? "").trim());
  element.textContent = "";
  const stream = new Blob([packed as BlobPart]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function fromBase64(text: string): Uint8Array {
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at++) bytes[at] = raw.charCodeAt(at);
  return bytes;
}

type Target = Float64Array | Uint32Array | Int32Array | Uint16Array | Uint8Array;

/** Columns by name, decoded when they are asked for. */
export class Columns {
  private readonly places = new Map<string, { head: ColumnHead; offset: number }>();

  constructor(
    private readonly bytes: Uint8Array,
    heads: ColumnHead[],
  ) {
    let offset = 0;
    for (const head of heads) {
      this.places.set(head.name, { head, offset });
      offset += head.bytes;
    }
    if (offset !== bytes.length) throw new Error(`columns of ${offset} bytes, but the page has ${bytes.length}`);
  }

  count(name: string): number {
    return this.place(name).head.count;
  }

  f64(name: string): Float64Array {
    return this.into(name, new Float64Array(this.count(name)));
  }

  u32(name: string): Uint32Array {
    return this.into(name, new Uint32Array(this.count(name)));
  }

  u16(name: string): Uint16Array {
    return this.into(name, new Uint16Array(this.count(name)));
  }

  u8(name: string): Uint8Array {
    return this.into(name, new Uint8Array(this.count(name)));
  }

  private place(name: string): { head: ColumnHead; offset: number } {
    const place = this.places.get(name);
    if (!place) throw new Error(`the page has no column ${name}`);
    return place;
  }

  private into<T extends Target>(name: string, target: T): T {
    const { head, offset } = this.place(name);
    const bytes = this.bytes;
    const isDelta = head.encoding === "delta";
    let at = offset;
    let last = 0;
    for (let row = 0; row < head.count; row++) {
      let byte = bytes[at++];
      let value = byte & 127;
      if (byte > 127) {
        // Four bytes fit into the integers of bit operations; beyond, floating point is exact up to 2^53.
        let shift = 7;
        do {
          byte = bytes[at++];
          value = shift < 28 ? value | ((byte & 127) << shift) : value + (byte & 127) * 2 ** shift;
          shift += 7;
        } while (byte > 127);
      }
      if (isDelta) {
        last += value % 2 === 0 ? value / 2 : -(value + 1) / 2;
        value = last;
      }
      target[row] = value;
    }
    if (at !== offset + head.bytes) throw new Error(`column ${name} is damaged`);
    return target;
  }
}
