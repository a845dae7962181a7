/**
 * A collection in memory: its rows by id, and its indexes over the same row objects.
 *
 * A row replaced is written over in place, so an index entry whose key stays needs no touch. Rows therefore belong to
 * the table: others read them, and keep none past the statement they run. What changes a table (`put`, `del`, `alter`
 * and the taking back of each) is the store's alone to call.
 */

import { assert } from "../base/assert.ts";
import { type Steps, toEnd } from "../base/steps.ts";
import type { GeoIndex } from "../geo/geo.ts";
import { fieldOf, sameKeys, typesOf } from "../schema/find.ts";
import type { CollectionSchema, Field, IndexDef } from "../schema/schema.ts";
import { Tree } from "../tree/tree.ts";
import type { Cell, FieldType, Row } from "../value/value.ts";
import { cellFits } from "./cell_fit.ts";
import { IdIndex } from "./id_index.ts";
import { OrderedIndex } from "./ordered_index.ts";
import { PlaceIndex } from "./place_index.ts";
import { RowPages } from "./row_pages.ts";
import type { Undo } from "./undo.ts";
import { cellBytes, contentBytes, fixedBytes } from "./weight.ts";

/** The index whose rows expire `ttlMs` after the time in `slot`. */
export interface Ttl {
  readonly slot: number;
  readonly ttlMs: number;
  readonly index: OrderedIndex;
}

/** All that an alter replaces. The parts themselves are never changed by one, so holding them holds the past. */
export interface TableState {
  readonly schema: CollectionSchema;
  readonly types: readonly FieldType[];
  readonly slots: ReadonlyMap<string, number>;
  readonly rows: Tree<number, Row>;
  readonly indexes: readonly (OrderedIndex | PlaceIndex)[];
  readonly ttl: Ttl | undefined;
  /** What each row weighs beside its contents. */
  readonly fixedBytes: number;
}

/** The bytes of all tables of a store, kept by them. */
export interface Scale {
  bytes: number;
}

export class Table {
  readonly cid: number;
  /** The id the next row gets that names none; above every id there has been. */
  nextId: number;
  /** Rises with every op on the table, and with the taking back of one. */
  version = 0;
  /** The rows by id, as an index. */
  readonly ids = new IdIndex(() => this.#state.rows);
  #state: TableState;
  #dataBytes = 0;
  readonly #scale: Scale;

  constructor(schema: CollectionSchema, nextId: number, scale: Scale) {
    this.cid = schema.cid;
    this.nextId = nextId;
    this.#scale = scale;
    this.#state = stateOf(schema, new Tree<number, Row>("id"), freshIndexes(schema));
  }

  get schema(): CollectionSchema {
    return this.#state.schema;
  }

  /** `types[i]` is the type of slot `i + 1`. */
  get types(): readonly FieldType[] {
    return this.#state.types;
  }

  get ttl(): Ttl | undefined {
    return this.#state.ttl;
  }

  get count(): number {
    return this.#state.rows.size;
  }

  /** What the rows' contents take: texts, lists, points; an estimate. */
  get dataBytes(): number {
    return this.#dataBytes;
  }

  /** Rows and indexes with all they take; an estimate. */
  get memoryBytes(): number {
    return this.#dataBytes + this.count * this.#state.fixedBytes;
  }

  /** Where a row holds a field; `id` is slot 0. */
  slotOf(name: string): number | undefined {
    return this.#state.slots.get(name);
  }

  get(id: number): Row | undefined {
    return this.#state.rows.get(id, id);
  }

  /** Rows by ascending id, from the first whose id is at least `fromId` (-Infinity: all). */
  scan(fromId: number, visit: (row: Row) => boolean): void {
    this.#state.rows.ascend(fromId, -Infinity, visit);
  }

  /** The ordered index of a field (no keys) or a path; a `@geo` one is asked for by `geo`. */
  index(field: string, keys: readonly string[]): OrderedIndex | undefined {
    for (const index of this.#state.indexes) {
      if (index instanceof OrderedIndex && index.def.field === field && sameKeys(index.def.keys, keys)) return index;
    }
    return undefined;
  }

  geo(field: string): GeoIndex<Row> | undefined {
    for (const index of this.#state.indexes) {
      if (index instanceof PlaceIndex && index.def.field === field) return index.places;
    }
    return undefined;
  }

  /** Every `unique` index, for whoever asks whether a row may be written. */
  uniques(): OrderedIndex[] {
    const uniques: OrderedIndex[] = [];
    for (const index of this.#state.indexes) {
      if (index instanceof OrderedIndex && index.def.kind === "unique") uniques.push(index);
    }
    return uniques;
  }

  put(row: Row, undo: Undo | undefined): void {
    const id = row[0] as number;
    assert(row.length === this.types.length + 1, `a row of ${row.length} cells for ${this.schema.name}`);
    assert(Number.isSafeInteger(id) && id >= 0, `a row's id is ${String(id)}`);
    // No row has had an id from the next one on.
    const held = id < this.nextId ? this.get(id) : undefined;
    if (held === undefined) {
      undo?.steps.push({ kind: "inserted", table: this, row, nextId: this.nextId });
      this.insert(row);
      if (id >= this.nextId) this.nextId = id + 1;
    } else {
      undo?.steps.push({ kind: "replaced", table: this, row: held, cells: held.slice() });
      this.replace(held, row);
    }
  }

  /** Answers whether there was such a row. */
  del(id: number, undo: Undo | undefined): boolean {
    const held = this.get(id);
    if (held === undefined) return false;
    undo?.steps.push({ kind: "deleted", table: this, row: held });
    this.remove(held);
    return true;
  }

  /**
   * Takes on a new schema. Where every slot stays, the rows do too, and only the indexes that differ are built;
   * else every row is made anew, and with the rows each index.
   */
  alter(schema: CollectionSchema, from: readonly number[], undo: Undo | undefined): void {
    assert(schema.cid === this.cid, `an alter of collection ${schema.cid} for ${this.cid}`);
    assert(
      from.length === schema.fields.length + 1 && from[0] === 0,
      `an alter of ${schema.name} has no slots' origins`,
    );
    const before = this.#state;
    undo?.steps.push({ kind: "altered", table: this, state: before, dataBytes: this.#dataBytes });
    const stays = from.length === before.types.length + 1 && from.every((slot, i) => slot === i);
    if (stays) this.#become(stateOf(schema, before.rows, this.#keptIndexes(schema)), this.#dataBytes);
    else {
      const rows = new RowPages();
      this.scan(-Infinity, (row) => {
        rows.push(rowFrom(row, from));
        return true;
      });
      this.#become(stateOf(schema, new Tree<number, Row>("id"), freshIndexes(schema)), 0);
      toEnd(this.#fill(rows));
    }
    this.version++;
  }

  /** Takes rows, sorted by id, into the empty table. */
  *load(rows: RowPages): Steps<void> {
    assert(this.count === 0, `${this.schema.name} is loaded over rows`);
    yield* this.#fill(rows);
    const last = rows.at(rows.length - 1);
    if (last !== undefined && (last[0] as number) >= this.nextId) this.nextId = (last[0] as number) + 1;
    this.version++;
  }

  insert(row: Row): void {
    this.#state.rows.insert(row[0] as number, row);
    for (const index of this.#state.indexes) index.insert(row);
    const bytes = contentBytes(row);
    this.#dataBytes += bytes;
    this.#scale.bytes += bytes + this.#state.fixedBytes;
    this.version++;
  }

  replace(row: Row, cells: Row): void {
    for (const index of this.#state.indexes) index.move(row, cells);
    let bytes = 0;
    for (let slot = 1; slot < cells.length; slot++) {
      const before = row[slot] as Cell;
      const after = cells[slot] as Cell;
      if (before !== after) bytes += cellBytes(after) - cellBytes(before);
      row[slot] = after;
    }
    this.#dataBytes += bytes;
    this.#scale.bytes += bytes;
    this.version++;
  }

  remove(row: Row): void {
    const id = row[0] as number;
    for (const index of this.#state.indexes) index.remove(row);
    const removed = this.#state.rows.remove(id, id);
    assert(removed, `${this.schema.name} does not hold row ${id}`);
    const bytes = contentBytes(row);
    this.#dataBytes -= bytes;
    this.#scale.bytes -= bytes + this.#state.fixedBytes;
    this.version++;
  }

  restore(state: TableState, dataBytes: number): void {
    this.#become(state, dataBytes);
    this.version++;
  }

  /** Throws unless rows, indexes, counters and weights are all that they should be. Reads everything. */
  check(): void {
    const { schema, types, rows: tree, indexes } = this.#state;
    tree.check();
    const rows: Row[] = [];
    let dataBytes = 0;
    this.scan(-Infinity, (row) => {
      const id = row[0] as number;
      const what = `row ${String(id)} of ${schema.name}`;
      assert(Number.isSafeInteger(id) && id >= 0, `${what}: no id`);
      assert(id < this.nextId, `${what}: the next id is ${this.nextId}`);
      assert(rows.length === 0 || (rows[rows.length - 1]?.[0] as number) < id, `${what} is out of order`);
      assert(this.get(id) === row, `${what} is not found by its id`);
      assert(row.length === types.length + 1, `${what} has ${row.length} cells`);
      for (const [i, type] of types.entries()) {
        assert(cellFits(type, row[i + 1] as Cell), `${what}: slot ${i + 1} holds no ${type.kind}`);
      }
      dataBytes += contentBytes(row);
      rows.push(row);
      return true;
    });
    assert(rows.length === this.count, `${schema.name}: ${rows.length} rows, counted ${this.count}`);
    assert(dataBytes === this.#dataBytes, `${schema.name} weighs ${dataBytes}, counted ${this.#dataBytes}`);
    assert(indexes.length === schema.indexes.length, `${schema.name}: ${indexes.length} indexes`);
    for (const [i, index] of indexes.entries()) {
      assert(index.def === schema.indexes[i], `${schema.name}: index ${i} is another than declared`);
      assert(index.slot === slotIn(schema, index.def), `${schema.name}: index ${i} reads slot ${index.slot}`);
      index.check(rows);
    }
  }

  *#fill(rows: RowPages): Steps<void> {
    const { rows: tree, indexes } = this.#state;
    yield* tree.loadPages(rows);
    for (const index of indexes) yield* filled(index, rows);
    this.#dataBytes += rows.bytes;
    this.#scale.bytes += rows.bytes + rows.length * this.#state.fixedBytes;
  }

  /** Indexes for a schema whose slots stay: those there are, as far as they hold the same, and new ones, filled. */
  #keptIndexes(schema: CollectionSchema): (OrderedIndex | PlaceIndex)[] {
    const old = this.#state.indexes;
    let rows: RowPages | undefined;
    return schema.indexes.map((def) => {
      const field = fieldOfIndex(schema, def);
      const held = old.find((index) => {
        const ordered = index instanceof OrderedIndex;
        return index.slot === field.slot && ordered === (def.kind !== "geo") && sameKeys(index.def.keys, def.keys);
      });
      if (held instanceof PlaceIndex) return held.as(def);
      if (held !== undefined) return held.as(def, field.type);
      if (rows === undefined) rows = this.#allRows();
      const index = freshIndex(def, field);
      toEnd(filled(index, rows));
      return index;
    });
  }

  #allRows(): RowPages {
    const rows = new RowPages();
    this.scan(-Infinity, (row) => {
      rows.push(row);
      return true;
    });
    return rows;
  }

  #become(state: TableState, dataBytes: number): void {
    this.#scale.bytes -= this.memoryBytes;
    this.#state = state;
    this.#dataBytes = dataBytes;
    this.#scale.bytes += this.memoryBytes;
  }
}

function stateOf(
  schema: CollectionSchema,
  rows: Tree<number, Row>,
  indexes: (OrderedIndex | PlaceIndex)[],
): TableState {
  const slots = new Map<string, number>([["id", 0]]);
  for (const [i, field] of schema.fields.entries()) {
    assert(field.slot === i + 1, `field ${field.name} has slot ${field.slot}`);
    slots.set(field.name, field.slot);
  }
  let ttl: Ttl | undefined;
  for (const index of indexes) {
    if (index.def.kind !== "ttl" || !(index instanceof OrderedIndex)) continue;
    assert(ttl === undefined, `${schema.name} has two ttl indexes`);
    ttl = { slot: index.slot, ttlMs: index.def.ttlMs, index };
  }
  return { schema, types: typesOf(schema), slots, rows, indexes, ttl, fixedBytes: fixedBytes(schema) };
}

function freshIndexes(schema: CollectionSchema): (OrderedIndex | PlaceIndex)[] {
  return schema.indexes.map((def) => freshIndex(def, fieldOfIndex(schema, def)));
}

function freshIndex(def: IndexDef, field: Field): OrderedIndex | PlaceIndex {
  return def.kind === "geo" ? new PlaceIndex(def, field.slot) : new OrderedIndex(def, field.slot, field.type);
}

function* filled(index: OrderedIndex | PlaceIndex, rows: RowPages): Steps<void> {
  if (index instanceof OrderedIndex) yield* index.load(rows);
  else index.load(rows);
  yield;
}

function fieldOfIndex(schema: CollectionSchema, def: IndexDef): Field {
  const field = fieldOf(schema, def.field);
  assert(field !== undefined, `an index over ${def.field}, which ${schema.name} has not`);
  return field;
}

function slotIn(schema: CollectionSchema, def: IndexDef): number {
  return fieldOfIndex(schema, def).slot;
}

function rowFrom(old: Row, from: readonly number[]): Row {
  const row: Row = new Array<Cell>(from.length);
  for (let slot = 0; slot < from.length; slot++) {
    const origin = from[slot] as number;
    row[slot] = origin === -1 ? null : (old[origin] as Cell);
  }
  return row;
}
