/**
 * A row as bytes, for the log, the snapshot and the replication stream.
 *
 * A row is the varint of its id, then each slot's cell in the order of the schema. A cell begins with a byte:
 *
 * | type             | null | else |
 * | ---------------- | ---- | ---- |
 * | text, json       | 3    | a string as ByteWriter writes it (its first byte is never 3) |
 * | bool             | 0    | 1 false, 2 true |
 * | int              | 0    | 1 + varint (n from 0), 2 + varint (-n for a negative n), 3 + i64 (not a safe integer) |
 * | float            | 0    | 1 + f64 |
 * | timestamp        | 0    | 1 + varint of ms from the epoch on, 2 + varint of -ms |
 * | bytes            | 0    | 1 + bytes |
 * | geo              | 0    | 1 + f64 longitude + f64 latitude |
 * | list             | 0    | 1 + varint count + cells |
 *
 * The bytes do not say their schema: the reader brings the types they were written with.
 */

import { assert, unreachable } from "../base/assert.ts";
import { type ByteReader, type ByteWriter, NO_STRING } from "../base/bytes.ts";
import { type Cell, type FieldType, Point, type Row } from "./value.ts";

/** `types[i]` is the type of slot `i + 1`. */
export function encodeRow(w: ByteWriter, types: readonly FieldType[], row: Row): void {
  w.varint(row[0] as number);
  for (let i = 0; i < types.length; i++) encodeCell(w, types[i]!, row[i + 1]!);
}

export function decodeRow(r: ByteReader, types: readonly FieldType[]): Row {
  const row: Row = new Array(types.length + 1);
  row[0] = r.varint();
  for (let i = 0; i < types.length; i++) row[i + 1] = decodeCell(r, types[i]!);
  return row;
}

function encodeSafe(w: ByteWriter, n: number): void {
  if (n >= 0) {
    w.u8(1);
    w.varint(n);
  } else {
    w.u8(2);
    w.varint(-n);
  }
}

export function encodeCell(w: ByteWriter, type: FieldType, cell: Cell): void {
  if (cell === null) {
    w.u8(type.kind === "text" || type.kind === "json" ? NO_STRING : 0);
    return;
  }
  switch (type.kind) {
    case "text":
    case "json":
      w.string(cell as string);
      return;
    case "timestamp":
      encodeSafe(w, cell as number);
      return;
    case "int":
      if (typeof cell === "bigint") {
        w.u8(3);
        w.i64(cell);
      } else {
        encodeSafe(w, cell as number);
      }
      return;
    case "bool":
      w.u8(cell === true ? 2 : 1);
      return;
    case "float":
      w.u8(1);
      w.f64(cell as number);
      return;
    case "bytes":
      w.u8(1);
      w.bytes(cell as Uint8Array);
      return;
    case "geo":
      w.u8(1);
      w.f64((cell as Point).lon);
      w.f64((cell as Point).lat);
      return;
    case "list": {
      const cells = cell as readonly Cell[];
      w.u8(1);
      w.varint(cells.length);
      for (let i = 0; i < cells.length; i++) encodeCell(w, type.of, cells[i]!);
      return;
    }
    default:
      unreachable(type);
  }
}

export function decodeCell(r: ByteReader, type: FieldType): Cell {
  if (type.kind === "text" || type.kind === "json") return r.stringOrNull();
  const form = r.u8();
  if (form === 0) return null;
  switch (type.kind) {
    case "timestamp":
    case "int":
      assert(form <= 3, "an int has form 1, 2 or 3");
      return form === 1 ? r.varint() : form === 2 ? -r.varint() : r.i64();
    case "bool":
      return form === 2;
    case "float":
      return r.f64();
    case "bytes":
      return r.bytes();
    case "geo":
      return new Point(r.f64(), r.f64());
    case "list": {
      const count = r.varint();
      assert(count <= r.remaining, "a list has no more cells than bytes are left");
      const cells: Cell[] = new Array(count);
      for (let i = 0; i < count; i++) cells[i] = decodeCell(r, type.of);
      return cells;
    }
    default:
      return unreachable(type as never);
  }
}
