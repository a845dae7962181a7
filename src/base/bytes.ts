/**
 * Bytes written and read front to back: what the log, the snapshot and the row encoding are made of.
 *
 * | item   | bytes |
 * | ------ | ----- |
 * | u8     | 1 |
 * | u32    | 4, little endian |
 * | f64    | 8, little endian IEEE double; NaN's payload is not kept |
 * | i64    | 8, little endian two's complement |
 * | varint | 1 to 8: seven bits a byte, lowest first, the top bit says "more"; whole numbers 0 to 2^53 - 1 |
 * | bytes  | varint length, then the bytes |
 * | string | varint `length * 4 + form`, then the characters; length counts bytes |
 *
 * Forms of a string: 0 = ASCII, 1 = UTF-8, 2 = UTF-16LE for a text that is not well-formed (half a surrogate pair has no
 * UTF-8, and a text must come back as it went in). Form 3 is left to whoever needs a mark in a string's place: the row
 * encoding writes null with it.
 */

import { assert } from "./assert.ts";

const FORM_ASCII = 0;
const FORM_UTF8 = 1;
const FORM_UTF16 = 2;
/** First byte of no string: free for a mark such as null. */
export const NO_STRING = 3;

const START_BYTES = 1024;

/** Buffer's own writers and readers of text, one per encoding: they skip the look-up of the encoding's name. */
interface TextBuffer extends Buffer {
  utf8Write(text: string, at: number): number;
  ucs2Write(text: string, at: number): number;
  latin1Slice(from: number, to: number): string;
  utf8Slice(from: number, to: number): string;
  ucs2Slice(from: number, to: number): string;
}

export class ByteWriter {
  private buffer: TextBuffer;
  private doubles: DataView;
  private at = 0;

  constructor(capacity = START_BYTES) {
    this.buffer = Buffer.allocUnsafeSlow(capacity) as TextBuffer;
    this.doubles = new DataView(this.buffer.buffer);
  }

  /** Bytes written since the start or the last `reset`. */
  get length(): number {
    return this.at;
  }

  /** Forgets what was written; the memory stays for the next use. */
  reset(): void {
    this.at = 0;
  }

  /** What was written, without a copy: good until the next write or `reset`. */
  view(from = 0): Uint8Array {
    return this.buffer.subarray(from, this.at);
  }

  /** Copies what was written from `from` to `to` into `target`: no view is made for it. */
  copyInto(target: Uint8Array, at: number, from: number, to: number): void {
    assert(to <= this.at, "only bytes already written are copied");
    this.buffer.copy(target, at, from, to);
  }

  /** What was written, as bytes of its own. */
  copy(from = 0): Uint8Array {
    return new Uint8Array(this.buffer.subarray(from, this.at));
  }

  u8(n: number): void {
    if (this.at + 1 > this.buffer.length) this.grow(1);
    this.buffer[this.at++] = n;
  }

  u32(n: number): void {
    if (this.at + 4 > this.buffer.length) this.grow(4);
    this.doubles.setUint32(this.at, n, true);
    this.at += 4;
  }

  f64(n: number): void {
    if (this.at + 8 > this.buffer.length) this.grow(8);
    this.doubles.setFloat64(this.at, n, true);
    this.at += 8;
  }

  i64(n: bigint): void {
    if (this.at + 8 > this.buffer.length) this.grow(8);
    this.doubles.setBigInt64(this.at, n, true);
    this.at += 8;
  }

  /** A whole number from 0 to 2^53 - 1. */
  varint(n: number): void {
    assert(n >= 0 && n <= Number.MAX_SAFE_INTEGER, "a varint is a whole number from 0 to 2^53 - 1");
    if (this.at + 8 > this.buffer.length) this.grow(8);
    const buffer = this.buffer;
    let at = this.at;
    let rest = n;
    if (rest > 0x7fffffff) {
      // Four groups of seven bits at once: what is left fits 32-bit arithmetic.
      // (`%` of two doubles costs ten times the rest.)
      const high = Math.floor(rest / 0x10000000);
      const low = rest - high * 0x10000000;
      rest = high;
      buffer[at] = (low & 0x7f) | 0x80;
      buffer[at + 1] = ((low >>> 7) & 0x7f) | 0x80;
      buffer[at + 2] = ((low >>> 14) & 0x7f) | 0x80;
      buffer[at + 3] = (low >>> 21) | 0x80;
      at += 4;
    }
    while (rest > 0x7f) {
      buffer[at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    buffer[at++] = rest;
    this.at = at;
  }

  /** Any text, half surrogate pairs too. */
  string(text: string): void {
    const length = text.length;
    const need = length * 3 + 8;
    if (this.at + need > this.buffer.length) this.grow(need);
    const start = this.at;
    this.varint(length * 4 + FORM_ASCII);
    const written = this.buffer.utf8Write(text, this.at);
    if (written === length) {
      this.at += written;
      return;
    }
    this.at = start;
    if (text.isWellFormed()) {
      this.varint(written * 4 + FORM_UTF8);
      this.at += this.buffer.utf8Write(text, this.at);
    } else {
      this.varint(length * 2 * 4 + FORM_UTF16);
      this.at += this.buffer.ucs2Write(text, this.at);
    }
  }

  bytes(bytes: Uint8Array): void {
    this.varint(bytes.length);
    this.raw(bytes);
  }

  /** Bytes without a length before them. */
  raw(bytes: Uint8Array): void {
    if (this.at + bytes.length > this.buffer.length) this.grow(bytes.length);
    this.buffer.set(bytes, this.at);
    this.at += bytes.length;
  }

  /** Overwrites four bytes written earlier: a length or a checksum that is known only now. */
  setU32(at: number, n: number): void {
    assert(at + 4 <= this.at, "only bytes already written are overwritten");
    this.doubles.setUint32(at, n, true);
  }

  private grow(need: number): void {
    const next = Buffer.allocUnsafeSlow(Math.max(this.buffer.length * 2, this.at + need)) as TextBuffer;
    next.set(this.buffer.subarray(0, this.at));
    this.buffer = next;
    this.doubles = new DataView(next.buffer);
  }
}

/** Reading past the end is a broken assumption: frames are checked whole before they are read. */
export class ByteReader {
  /** The whole memory that the bytes are a part of. */
  private buffer!: TextBuffer;
  private doubles!: DataView;
  private start = 0;
  private at = 0;
  private end = 0;

  constructor(bytes: Uint8Array, from = 0, to = bytes.length) {
    this.wrap(bytes.buffer);
    this.over(bytes);
    this.end = this.at + to;
    this.at += from;
  }

  /** Reads these bytes from now on: pieces of one buffer need no reader each, which costs more than a small piece does. */
  over(bytes: Uint8Array): void {
    if (bytes.buffer !== this.doubles.buffer) this.wrap(bytes.buffer);
    this.start = bytes.byteOffset;
    this.at = bytes.byteOffset;
    this.end = bytes.byteOffset + bytes.length;
  }

  get position(): number {
    return this.at - this.start;
  }

  get remaining(): number {
    return this.end - this.at;
  }

  u8(): number {
    const at = this.take(1);
    return this.buffer[at]!;
  }

  u32(): number {
    return this.doubles.getUint32(this.take(4), true);
  }

  f64(): number {
    return this.doubles.getFloat64(this.take(8), true);
  }

  i64(): bigint {
    return this.doubles.getBigInt64(this.take(8), true);
  }

  varint(): number {
    const buffer = this.buffer;
    const end = this.end;
    let at = this.at;
    let n = 0;
    let scale = 1;
    // Eight bytes at most: a scale past the seventh group would leave the exact doubles.
    while (at < end && scale <= 2 ** 49) {
      const byte = buffer[at++]!;
      n += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        this.at = at;
        return n;
      }
      scale *= 128;
    }
    assert(false, at < end ? "a varint has at most 8 bytes" : "reading past the end of the bytes");
  }

  string(): string {
    const text = this.stringOrNull();
    assert(text !== null, "a string, not the mark of none");
    return text;
  }

  /** A string, or null where the byte NO_STRING stands in its place. */
  stringOrNull(): string | null {
    const head = this.varint();
    if (head === NO_STRING) return null;
    const length = Math.floor(head / 4);
    const at = this.take(length);
    switch (head % 4) {
      case FORM_ASCII:
        return this.buffer.latin1Slice(at, at + length);
      case FORM_UTF8:
        return this.buffer.utf8Slice(at, at + length);
      case FORM_UTF16:
        return this.buffer.ucs2Slice(at, at + length);
      default:
        assert(false, "a string has form 0, 1 or 2");
    }
  }

  /** Bytes of their own, not a view of what is read. */
  bytes(): Uint8Array {
    const length = this.varint();
    const at = this.take(length);
    return new Uint8Array(this.buffer.subarray(at, at + length));
  }

  private take(count: number): number {
    const at = this.at;
    assert(at + count <= this.end, "reading past the end of the bytes");
    this.at = at + count;
    return at;
  }

  private wrap(memory: ArrayBufferLike): void {
    this.buffer = Buffer.from(memory) as TextBuffer;
    this.doubles = new DataView(memory);
  }
}

/** Texts up to this many units are copied through one buffer that is always there. */
const COPIED_LENGTH = 16_384;
const copyBuffer = Buffer.allocUnsafeSlow(COPIED_LENGTH * 3) as TextBuffer;

/**
 * The same text in memory of its own. A slice of a text shares the characters of the text it was cut from and keeps all
 * of them alive, so one short value cut from a request's body would hold the whole body for as long as it is kept.
 */
export function ownText(text: string): string {
  const length = text.length;
  if (length === 0) return "";
  const buffer = length <= COPIED_LENGTH ? copyBuffer : (Buffer.allocUnsafeSlow(length * 3) as TextBuffer);
  const written = buffer.utf8Write(text, 0);
  if (written === length) return buffer.latin1Slice(0, written);
  if (text.isWellFormed()) return buffer.utf8Slice(0, written);
  return buffer.ucs2Slice(0, buffer.ucs2Write(text, 0));
}
