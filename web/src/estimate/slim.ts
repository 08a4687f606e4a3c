// Archives without weights: what describes a graph is small, and all that is read of a file of many GB.
//
// The format is that of APPNOTE.TXT (PKWARE), with the 64-bit fields that PyTorch writes for large archives.

/** Smaller files are read whole. */
const SMALL = 1 << 24;

const [LOCAL, CENTRAL, END, END64, LOCATOR64] = [0x04034b50, 0x02014b50, 0x06054b50, 0x06064b50, 0x07064b50];

/** The bytes behind the directory: its end, the same in 64 bits with what tells its place, and a comment. */
const TAIL = 22 + 20 + 56 + 0xffff;

/** The value of a 32-bit field that has its value in 64 bits elsewhere. */
const ELSEWHERE = 0xffffffff;

/** The header of the 64-bit fields in an entry of the directory. */
const FIELDS64 = 1;

/** A file of an archive. */
interface Entry {
  name: Uint8Array;
  compression: number;
  crc: number;
  packed: number;
  size: number;
  /** Where its local header begins. */
  offset: number;
}

/** The file; of a large archive, one with its JSON alone. */
export async function withoutWeights(file: Blob): Promise<ArrayBuffer> {
  if (file.size <= SMALL || (await view(file, 0, 4)).getUint32(0, true) !== LOCAL) return file.arrayBuffer();
  const kept = (await entries(file)).filter(({ name }) => new TextDecoder().decode(name).endsWith(".json"));
  return new Blob(await archive(file, kept)).arrayBuffer();
}

async function view(file: Blob, from: number, to: number): Promise<DataView> {
  return new DataView(await file.slice(from, to).arrayBuffer());
}

async function entries(file: Blob): Promise<Entry[]> {
  const { from, to } = await directory(file);
  const data = await view(file, from, to);
  const found: Entry[] = [];
  for (let at = 0; at + 46 <= data.byteLength && data.getUint32(at, true) === CENTRAL; ) {
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((field) => data.getUint16(at + field, true));
    const sizes = wide(data, at, at + 46 + nameLength, extraLength);
    found.push({ name: new Uint8Array(data.buffer, at + 46, nameLength), compression: data.getUint16(at + 10, true), crc: data.getUint32(at + 16, true), ...sizes });
    at += 46 + nameLength + extraLength + commentLength;
  }
  return found;
}

/** Sizes and place of an entry, in 64 bits where they have as many. */
function wide(data: DataView, at: number, extra: number, length: number): { size: number; packed: number; offset: number } {
  let [size, packed, offset] = [24, 20, 42].map((field) => data.getUint32(at + field, true));
  for (let field = extra; field + 4 <= extra + length; field += 4 + data.getUint16(field + 2, true)) {
    if (data.getUint16(field, true) !== FIELDS64) continue;
    let next = field + 4;
    const value = (narrow: number): number => {
      if (narrow !== ELSEWHERE) return narrow;
      next += 8;
      return Number(data.getBigUint64(next - 8, true));
    };
    [size, packed, offset] = [value(size), value(packed), value(offset)];
  }
  return { size, packed, offset };
}

/** Where the directory of the archive is. */
async function directory(file: Blob): Promise<{ from: number; to: number }> {
  const start = Math.max(0, file.size - TAIL);
  const tail = await view(file, start, file.size);
  let end = tail.byteLength - 22;
  while (end >= 0 && tail.getUint32(end, true) !== END) end--;
  if (end < 0) throw new Error("the archive has no end: it was not copied whole");
  const [size, from] = [tail.getUint32(end + 12, true), tail.getUint32(end + 16, true)];
  if (size !== ELSEWHERE && from !== ELSEWHERE) return { from, to: from + size };
  const locator = end - 20;
  if (locator < 0 || tail.getUint32(locator, true) !== LOCATOR64) throw new Error("the archive does not say where its directory is");
  const place = Number(tail.getBigUint64(locator + 8, true));
  const record = await view(file, place, place + 56);
  if (record.byteLength < 56 || record.getUint32(0, true) !== END64) throw new Error("the archive does not say where its directory is");
  const wideFrom = Number(record.getBigUint64(48, true));
  return { from: wideFrom, to: wideFrom + Number(record.getBigUint64(40, true)) };
}

/** An archive of some of the files of another one, as they are packed there. */
async function archive(file: Blob, kept: Entry[]): Promise<BlobPart[]> {
  const parts: BlobPart[] = [];
  const list: BlobPart[] = [];
  let [length, listed] = [0, 0];
  for (const entry of kept) {
    const there = await view(file, entry.offset, entry.offset + 30);
    const data = entry.offset + 30 + there.getUint16(26, true) + there.getUint16(28, true);
    const local = header(LOCAL, 30, 4, entry);
    const central = header(CENTRAL, 46, 6, entry);
    central.setUint32(42, length, true);
    parts.push(local, entry.name as Uint8Array<ArrayBuffer>, file.slice(data, data + entry.packed));
    list.push(central, entry.name as Uint8Array<ArrayBuffer>);
    length += 30 + entry.name.length + entry.packed;
    listed += 46 + entry.name.length;
  }
  const end = new DataView(new ArrayBuffer(22));
  end.setUint32(0, END, true);
  for (const field of [8, 10]) end.setUint16(field, kept.length, true);
  end.setUint32(12, listed, true);
  end.setUint32(16, length, true);
  return [...parts, ...list, end];
}

/** The header of a file, local or in the directory: the fields that both have begin at `from`. */
function header(signature: number, length: number, from: number, { name, compression, crc, packed, size }: Entry): DataView<ArrayBuffer> {
  const data = new DataView(new ArrayBuffer(length));
  data.setUint32(0, signature, true);
  data.setUint16(from, 20, true);
  data.setUint16(from + 4, compression, true);
  [crc, packed, size].forEach((value, at) => data.setUint32(from + 10 + 4 * at, value, true));
  data.setUint16(from + 22, name.length, true);
  return data;
}
