/**
 * Documents sent as json, made into rows by one walk over their text: no list of members, no value on its way to a cell
 * but where the cell is none of the plain kinds. A page of jobs names the same fields in the same order over and over, so
 * each key is first compared with the one that stood in its place in the document before.
 */

import { ownText } from "../base/bytes.ts";
import { TIME_MAX_MS } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import { unknownField } from "../plan/expression.ts";
import type { Table } from "../store/table.ts";
import { decodeString, jsonString, skipString, skipValue, tooDeep, valueAt } from "../value/json.ts";
import { parseTime } from "../value/time.ts";
import { fitCell } from "../value/types.ts";
import { type Cell, type FieldType, type Json, kindWords, type Row } from "../value/value.ts";
import { idOf } from "./document_id.ts";

const QUOTE = 0x22;
const COMMA = 0x2c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Reads the value between two offsets of valid, compact json as a cell. */
type CellReader = (text: string, from: number, to: number) => Cell;

interface Member {
  /** As it stands in a document that writes it without escapes, the colon with it. */
  readonly key: string;
  readonly slot: number;
  readonly read: CellReader;
}

export class SentRows {
  readonly #table: Table;
  readonly #blank: Row;
  /** By slot, made when a document first names the field. */
  readonly #members: (Member | undefined)[] = [];
  /** As the latest documents had them, by place. */
  readonly #expected: Member[] = [];

  /** @param blank what a document that names nothing is */
  constructor(table: Table, blank: Row) {
    this.#table = table;
    this.#blank = blank;
  }

  /** The row of one document, or those of a list. A refusal made by one of a list says which, counted from 0. */
  rows(json: Json): Row[] {
    const { text } = json;
    const rows: Row[] = [];
    if (!json.isList) {
      this.#document(text, 0, rows);
      return rows;
    }
    try {
      for (let at = 1; text.charCodeAt(at) !== CLOSE_LIST; ) {
        at = this.#document(text, at, rows);
        if (text.charCodeAt(at) === COMMA) at++;
      }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      throw error.behind(`document ${rows.length}: `, { document: rows.length });
    }
    return rows;
  }

  /** Adds the row of the document at an offset; answers the offset behind it. */
  #document(text: string, from: number, rows: Row[]): number {
    if (text.charCodeAt(from) !== OPEN_OBJECT) {
      const found = valueAt(text, from, skipValue(text, from));
      throw new Refusal("bad_value", `a document is an object, not ${kindWords(found)}`);
    }
    const row = this.#blank.slice();
    const expected = this.#expected;
    let at = from + 1;
    for (let place = 0; text.charCodeAt(at) !== CLOSE_OBJECT; place++) {
      let member = expected[place];
      if (member !== undefined && text.startsWith(member.key, at)) at += member.key.length;
      else {
        const keyEnd = skipString(text, at);
        member = this.#member(decodeString(text, at + 1, keyEnd - 1));
        if (place <= expected.length) expected[place] = member;
        at = keyEnd + 1;
      }
      const end = skipValue(text, at);
      row[member.slot] = member.read(text, at, end);
      at = text.charCodeAt(end) === COMMA ? end + 1 : end;
    }
    rows.push(row);
    return at + 1;
  }

  #member(name: string): Member {
    const table = this.#table;
    const slot = table.slotOf(name);
    if (slot === undefined) throw unknownField(table, name);
    let member = this.#members[slot];
    if (member === undefined) {
      const read: CellReader =
        slot === 0
          ? (text, from, to) => idOf(valueAt(text, from, to))
          : readerOf(table.types[slot - 1] as FieldType, `\`${name}\``);
      member = { key: `${jsonString(name)}:`, slot, read };
      this.#members[slot] = member;
    }
    return member;
  }
}

/** Digits that make a safe int whatever they are. */
const SAFE_DIGITS = 15;

/** A whole number from 0 that is short enough to be one for sure; -1 for anything else. */
function digitsAt(text: string, from: number, to: number): number {
  if (to - from > SAFE_DIGITS) return -1;
  let n = 0;
  for (let i = from; i < to; i++) {
    const digit = text.charCodeAt(i) - 0x30;
    if (!(digit >= 0 && digit <= 9)) return -1;
    n = n * 10 + digit;
  }
  return n;
}

/** What is not told at a glance goes the long way, by a value: it is rare, or it is to be refused. */
function readerOf(type: FieldType, where: string): CellReader {
  const fitted: CellReader = (text, from, to) => fitCell(type, valueAt(text, from, to), where);
  switch (type.kind) {
    case "int":
      return (text, from, to) => {
        const n = digitsAt(text, from, to);
        return n >= 0 ? n : fitted(text, from, to);
      };
    case "timestamp":
      return (text, from, to) => {
        const unit = text.charCodeAt(from);
        if (unit === QUOTE) return parseTime(text.slice(from + 1, to - 1)) ?? fitted(text, from, to);
        const n = digitsAt(text, from, to);
        return n >= 0 && n <= TIME_MAX_MS ? n : fitted(text, from, to);
      };
    case "json":
      return (text, from, to) => {
        // A text may be written with escapes that are not its own form; all else stays as it was sent.
        const unit = text.charCodeAt(from);
        if (unit === QUOTE || unit === 0x6e) return fitted(text, from, to);
        const json = ownText(text.slice(from, to));
        return tooDeep(json) ? fitted(text, from, to) : json;
      };
    default:
      return fitted;
  }
}
