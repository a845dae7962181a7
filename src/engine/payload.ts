/**
 * What a frame of the log holds: sections, each a tag byte and what follows.
 *
 *     1  a change, as store/encoding.ts writes it; a batch has one a statement, in their order
 *     2  an idempotency record, as engine/idempotency.ts writes it: of the same frame as its write, so no crash parts them
 */

import { assert } from "../base/assert.ts";
import { ByteReader, type ByteWriter } from "../base/bytes.ts";
import type { Change } from "../store/change.ts";
import { type Catalog, decodeChange, encodeChange } from "../store/encoding.ts";
import type { Store } from "../store/store.ts";
import { decodeRecord, type KeptAnswer } from "./idempotency.ts";

const CHANGE = 1;
const RECORD = 2;

/** @param store as it is before the change is applied */
export function writeChange(w: ByteWriter, store: Store, change: Change): void {
  w.u8(CHANGE);
  encodeChange(w, store, change);
}

/** Begins the record of an answer, which is for `encodeRecord` to write; answers where it begins. */
export function beginRecord(w: ByteWriter): number {
  w.u8(RECORD);
  return w.length;
}

/** Frames read one after another. */
export class PayloadReader {
  readonly #reader = new ByteReader(new Uint8Array(0));

  /** Hands on the sections of a frame in their order. */
  read(
    payload: Uint8Array,
    catalog: Catalog,
    onChange: (change: Change) => void,
    onRecord: (record: KeptAnswer) => void = () => {},
  ): void {
    const r = this.#reader;
    r.over(payload);
    while (r.remaining > 0) {
      const tag = r.u8();
      if (tag === CHANGE) onChange(decodeChange(r, catalog));
      else {
        assert(tag === RECORD, `a frame holds an unknown section ${tag}`);
        onRecord(decodeRecord(r));
      }
    }
  }
}

/** One frame. */
export function readPayload(payload: Uint8Array, catalog: Catalog, onChange: (change: Change) => void): void {
  new PayloadReader().read(payload, catalog, onChange);
}
