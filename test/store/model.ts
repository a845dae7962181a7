/**
 * A store as plain as can be, the judge of the real one: rows in a Map, every question answered by a pass over all of
 * them, its own order of values, and undo by copying everything first.
 */

import type { CollectionSchema } from "../../src/schema/schema.ts";
import type { Change } from "../../src/store/change.ts";
import type { Key, KeyRange } from "../../src/store/ordered_index.ts";
import { type Cell, Float, Json, Point, type Row } from "../../src/value/value.ts";

export interface ModelTable {
  schema: CollectionSchema;
  nextId: number;
  rows: Map<number, Row>;
}

export class Model {
  tables = new Map<number, ModelTable>();
  nextCid = 1;

  copy(): Model {
    const copy = new Model();
    copy.nextCid = this.nextCid;
    for (const [cid, table] of this.tables) {
      const rows = new Map([...table.rows].map(([id, row]) => [id, [...row]]));
      copy.tables.set(cid, { schema: table.schema, nextId: table.nextId, rows });
    }
    return copy;
  }

  apply(change: Change): void {
    for (const op of change) {
      if (op.op === "put") {
        const table = this.of(op.cid);
        table.rows.set(op.row[0] as number, [...op.row]);
        table.nextId = Math.max(table.nextId, (op.row[0] as number) + 1);
      } else if (op.op === "del") this.of(op.cid).rows.delete(op.id);
      else if (op.op === "create") {
        this.tables.set(op.schema.cid, { schema: op.schema, nextId: 1, rows: new Map() });
        this.nextCid = Math.max(this.nextCid, op.schema.cid + 1);
      } else if (op.op === "drop") this.tables.delete(op.cid);
      else {
        const table = this.of(op.schema.cid);
        table.schema = op.schema;
        for (const [id, row] of table.rows) {
          table.rows.set(
            id,
            op.from.map((slot) => (slot === -1 ? null : (row[slot] as Cell))),
          );
        }
      }
    }
  }

  of(cid: number): ModelTable {
    const table = this.tables.get(cid);
    if (table === undefined) throw new Error(`the model has no table ${cid}`);
    return table;
  }
}

export function rowsById(table: ModelTable): Row[] {
  return [...table.rows.values()].sort((a, b) => (a[0] as number) - (b[0] as number));
}

/** What a path leads to, by parsing the whole. Documents of the tests hold only what survives that. */
export function plainKey(row: Row, slot: number, keys: readonly string[]): Key {
  const cell = row[slot] as Cell;
  if (keys.length === 0 || cell === null) return cell;
  let at: unknown = JSON.parse(cell as string);
  for (const key of keys) {
    if (at === null || typeof at !== "object" || Array.isArray(at) || !Object.hasOwn(at, key)) return null;
    at = (at as Record<string, unknown>)[key];
  }
  if (at !== null && typeof at === "object") return new Json(JSON.stringify(at));
  return at as Key;
}

/** The rows a range holds, in the order of a walk. */
export function plainWalk(
  table: ModelTable,
  slot: number,
  keys: readonly string[],
  range: KeyRange,
  descending: boolean,
): Row[] {
  const found = rowsById(table).filter((row) => {
    const key = plainKey(row, slot, keys);
    if (range.lo !== undefined) {
      const order = plainOrder(key, range.lo);
      if (order < 0 || (order === 0 && range.loOpen)) return false;
    }
    if (range.hi !== undefined) {
      const order = plainOrder(key, range.hi);
      if (order > 0 || (order === 0 && range.hiOpen)) return false;
    }
    return true;
  });
  const sign = descending ? -1 : 1;
  // The sort is stable, so equal keys stay by id.
  return found.sort((a, b) => sign * plainOrder(plainKey(a, slot, keys), plainKey(b, slot, keys)));
}

export function plainOrder(a: Key, b: Key): number {
  const rank = rankOf(a) - rankOf(b);
  if (rank !== 0) return rank;
  if (a === null) return 0;
  if (a instanceof Uint8Array) return Buffer.compare(a, b as Uint8Array);
  if (typeof a === "string") return Buffer.compare(Buffer.from(a), Buffer.from(b as string));
  if (a instanceof Json) return plainJsonOrder(JSON.parse(a.text), JSON.parse((b as Json).text));
  const left = a instanceof Float ? a.n : (a as number | bigint | boolean);
  const right = b instanceof Float ? b.n : (b as number | bigint | boolean);
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Lists of numbers element by element; objects, of which the tests make only some of one key, by their text. */
function plainJsonOrder(a: unknown, b: unknown): number {
  if (Array.isArray(a) && Array.isArray(b)) {
    for (let i = 0; i < Math.min(a.length, b.length); i++) if (a[i] !== b[i]) return a[i] - b[i];
    return a.length - b.length;
  }
  return Buffer.compare(Buffer.from(JSON.stringify(a)), Buffer.from(JSON.stringify(b)));
}

function rankOf(key: Key): number {
  if (key === null) return 0;
  if (typeof key === "boolean") return 1;
  if (typeof key === "number" || typeof key === "bigint" || key instanceof Float) return 2;
  if (typeof key === "string") return 3;
  if (key instanceof Json) return key.text.startsWith("[") ? 4 : 5;
  return 6;
}

/** To the bit: -0 is not 0 here, and a bigint no number. */
export function sameCell(a: Cell, b: Cell): boolean {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0;
  if (a instanceof Point && b instanceof Point) return Object.is(a.lon, b.lon) && Object.is(a.lat, b.lat);
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, i) => sameCell(item as Cell, b[i] as Cell));
  }
  return Object.is(a, b);
}

export function sameRow(a: Row, b: Row): boolean {
  return a.length === b.length && a.every((cell, slot) => sameCell(cell, b[slot] as Cell));
}
