/**
 * Records by name, laid out so that a million of them cost the garbage collector nothing: the bytes of the records lie one
 * behind another in chunks, as they came, and a table of numbers tells where each begins. (As objects in a Map a record
 * cost a put of a job twice its time, most of it in collections that walk the map again and again.) The oldest go by whole
 * chunks.
 *
 *     record in a chunk, at a multiple of 8: length (4 bytes), name text, the rest as its owner has it
 *
 * The table is open addressing by a seeded hash of the name: for each slot the hash, and the record's mark: its place in
 * eighths, counted from when the table was last made, plus 1; 0 is an empty slot. A mark before the first chunk is a record
 * that is gone; its slot is used again when the table is made anew.
 */

import { ByteReader, type ByteWriter } from "../base/bytes.ts";

const CHUNK_BYTES = 256 * 1024;
const LENGTH_BYTES = 4;
const LEAST_SLOTS = 1_024;
/** The table is made anew before marks leave their 32 bits. */
const MOST_MARK = 2 ** 31;

interface Chunk {
  /** Mark of its first record. */
  from: number;
  readonly bytes: Uint8Array;
  /** The same bytes, for the lengths. */
  readonly words: Uint32Array;
  used: number;
  records: number;
  /** When its newest record was kept. */
  atMs: number;
}

export class AnswerTable {
  readonly #seed = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
  readonly #chunks: Chunk[] = [];
  /** A hash and a mark, slot by slot. */
  #slots = new Uint32Array(LEAST_SLOTS * 2);
  /** Slots that are not empty, those of records that are gone among them. */
  #taken = 0;
  #records = 0;
  #bytes = 0;
  #lastName = "";
  #lastHash = Bun.hash.xxHash32("", this.#seed);

  /** Records there are; one that was replaced counts until its chunk goes. */
  get size(): number {
    return this.#records;
  }

  /** Memory it takes. */
  get bytes(): number {
    return this.#bytes + this.#slots.byteLength;
  }

  /** Behind the name of the record called so; undefined when there is none. */
  find(name: string): ByteReader | undefined {
    const slots = this.#slots;
    const mask = slots.length - 1;
    const hash = this.#hashOf(name);
    for (let at = (hash * 2) & mask; ; at = (at + 2) & mask) {
      const mark = slots[at + 1] as number;
      if (mark === 0) return undefined;
      if (slots[at] !== hash) continue;
      const reader = this.#readerAt(mark);
      if (reader?.string() === name) return reader;
    }
  }

  /** @param from where in `w` the record begins, its name first; it is the last that was written there */
  add(name: string, w: ByteWriter, from: number, atMs: number): void {
    const last = this.#chunks.at(-1);
    if (this.#taken * 4 >= this.#slots.length || (last !== undefined && last.from > MOST_MARK)) this.#renew();
    const mark = this.#append(w, from, atMs);
    const slots = this.#slots;
    const mask = slots.length - 1;
    const hash = this.#hashOf(name);
    let at = (hash * 2) & mask;
    for (; slots[at + 1] !== 0; at = (at + 2) & mask) {
      if (slots[at] === hash && this.#readerAt(slots[at + 1] as number)?.string() === name) break;
    }
    if (slots[at + 1] === 0) this.#taken++;
    slots[at] = hash;
    slots[at + 1] = mark;
  }

  /** Lets go of the oldest chunks: those with nothing newer than `sinceMs`, and as many as are past `mostBytes`. */
  forget(sinceMs: number, mostBytes: number): void {
    while (this.#chunks.length > 1) {
      const oldest = this.#chunks[0] as Chunk;
      if (oldest.atMs > sinceMs && this.bytes <= mostBytes) return;
      this.#chunks.shift();
      this.#bytes -= oldest.bytes.length;
      this.#records -= oldest.records;
    }
  }

  /** Every record in the order they were kept, as they are now: gives false when there was no more. */
  walk(): (visit: (record: Uint8Array) => void, most: number) => boolean {
    const chunks = this.#chunks.map((chunk) => ({ ...chunk }));
    let at = 0;
    return (visit, most) => {
      let visited = 0;
      for (let chunk = chunks[0]; chunk !== undefined && visited < most; chunk = chunks[0]) {
        if (at >= chunk.used) {
          chunks.shift();
          at = 0;
          continue;
        }
        const from = at + LENGTH_BYTES;
        const to = from + (chunk.words[at / 4] as number);
        at = eighths(to) * 8;
        visit(chunk.bytes.subarray(from, to));
        visited++;
      }
      return visited > 0;
    };
  }

  /** A name is mostly added right after it was not found. */
  #hashOf(name: string): number {
    if (name !== this.#lastName) {
      this.#lastName = name;
      this.#lastHash = Bun.hash.xxHash32(name, this.#seed);
    }
    return this.#lastHash;
  }

  /** Answers its mark. */
  #append(w: ByteWriter, start: number, atMs: number): number {
    const length = w.length - start;
    const need = eighths(LENGTH_BYTES + length) * 8;
    let chunk = this.#chunks.at(-1);
    if (chunk === undefined || chunk.used + need > chunk.bytes.length) {
      const from = chunk === undefined ? 1 : chunk.from + chunk.used / 8;
      const bytes = new Uint8Array(Math.max(CHUNK_BYTES, need));
      chunk = { from, bytes, words: new Uint32Array(bytes.buffer), used: 0, records: 0, atMs };
      this.#chunks.push(chunk);
      this.#bytes += bytes.length;
    }
    const { used } = chunk;
    chunk.words[used / 4] = length;
    w.copyInto(chunk.bytes, used + LENGTH_BYTES, start, start + length);
    chunk.used += need;
    chunk.records++;
    if (atMs > chunk.atMs) chunk.atMs = atMs;
    this.#records++;
    return chunk.from + used / 8;
  }

  /** Undefined when the record is gone. */
  #readerAt(mark: number): ByteReader | undefined {
    let low = 0;
    let high = this.#chunks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#chunks[middle] as Chunk).from <= mark) low = middle;
      else high = middle - 1;
    }
    const chunk = this.#chunks[low];
    if (chunk === undefined || mark < chunk.from) return undefined;
    const at = (mark - chunk.from) * 8;
    const from = at + LENGTH_BYTES;
    return new ByteReader(chunk.bytes, from, from + (chunk.words[at / 4] as number));
  }

  /** The table over the records that are still there, with room for as many more; marks count from the first of them. */
  #renew(): void {
    const first = this.#chunks[0]?.from ?? MOST_MARK;
    const before = this.#slots;
    let there = 0;
    for (let at = 1; at < before.length; at += 2) if ((before[at] as number) >= first) there++;
    let slots = LEAST_SLOTS;
    while (slots < there * 4) slots *= 2;
    const after = new Uint32Array(slots * 2);
    const mask = after.length - 1;
    for (let from = 0; from < before.length; from += 2) {
      const mark = before[from + 1] as number;
      if (mark < first) continue;
      const hash = before[from] as number;
      let at = (hash * 2) & mask;
      while (after[at + 1] !== 0) at = (at + 2) & mask;
      after[at] = hash;
      after[at + 1] = mark - first + 1;
    }
    for (const chunk of this.#chunks) chunk.from -= first - 1;
    this.#slots = after;
    this.#taken = there;
  }
}

function eighths(bytes: number): number {
  return Math.ceil(bytes / 8);
}
