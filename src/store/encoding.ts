/**
 * Changes and schemas as bytes: what a frame of the log carries and what a snapshot begins with.
 *
 * | item   | bytes |
 * | ------ | ----- |
 * | change | varint count, then its ops |
 * | put    | u8 1, varint cid, the row as `value/encoding.ts` writes it |
 * | del    | u8 2, varint cid, varint id |
 * | create | u8 3, schema |
 * | drop   | u8 4, varint cid |
 * | alter  | u8 5, schema, then for each slot of it varint (old slot + 1), 0 for none |
 * | schema | varint cid, string name, varint count of fields, the fields in slot order, varint count of indexes, these |
 * | field  | string name, u8 lists around the type, u8 the type's kind, u8 1 when required |
 * | index  | string field, varint count of keys, each a string, u8 kind, f64 ttl in ms, string ttl as written |
 *
 * A row is written by its collection's types alone, so whoever reads one needs the schema as it was at that op.
 */

import { assert } from "../base/assert.ts";
import type { ByteReader, ByteWriter } from "../base/bytes.ts";
import { LIST_LEVELS } from "../base/limits.ts";
import { typesOf } from "../schema/find.ts";
import type { CollectionSchema, Field, IndexDef, IndexKind } from "../schema/schema.ts";
import { decodeRow, encodeRow } from "../value/encoding.ts";
import type { FieldType, ScalarKind } from "../value/value.ts";
import type { Change, Op } from "./change.ts";
import type { Store } from "./store.ts";

const PUT = 1;
const DEL = 2;
const CREATE = 3;
const DROP = 4;
const ALTER = 5;

/** Places in these lists are the bytes on disk: only ever append. */
const KINDS: readonly ScalarKind[] = ["bool", "int", "float", "text", "bytes", "timestamp", "json", "geo"];
const INDEX_KINDS: readonly IndexKind[] = ["hash", "unique", "sorted", "geo", "ttl"];

/** The schemas a reader of changes has met: those it starts with, then as the changes it decodes make them. */
export class Catalog {
  readonly #entries = new Map<number, { schema: CollectionSchema; types: readonly FieldType[] }>();

  constructor(schemas: Iterable<CollectionSchema> = []) {
    for (const schema of schemas) this.set(schema);
  }

  schema(cid: number): CollectionSchema | undefined {
    return this.#entries.get(cid)?.schema;
  }

  types(cid: number): readonly FieldType[] | undefined {
    return this.#entries.get(cid)?.types;
  }

  set(schema: CollectionSchema): void {
    this.#entries.set(schema.cid, { schema, types: typesOf(schema) });
  }

  delete(cid: number): void {
    this.#entries.delete(cid);
  }
}

/** @param store as it is before the change is applied */
export function encodeChange(w: ByteWriter, store: Store, change: Change): void {
  // Schemas the change itself makes; most changes make none.
  let made: Catalog | undefined;
  w.varint(change.length);
  for (const op of change) {
    switch (op.op) {
      case "put": {
        const types = made?.types(op.cid) ?? store.tableById(op.cid)?.types;
        assert(types !== undefined, `a put into table ${op.cid}, which is not there`);
        w.u8(PUT);
        w.varint(op.cid);
        encodeRow(w, types, op.row);
        break;
      }
      case "del":
        w.u8(DEL);
        w.varint(op.cid);
        w.varint(op.id);
        break;
      case "create":
        w.u8(CREATE);
        encodeSchema(w, op.schema);
        made ??= new Catalog();
        made.set(op.schema);
        break;
      case "drop":
        w.u8(DROP);
        w.varint(op.cid);
        break;
      case "alter":
        w.u8(ALTER);
        encodeSchema(w, op.schema);
        assert(op.from.length === op.schema.fields.length + 1, "an alter tells where every slot comes from");
        for (const slot of op.from) w.varint(slot + 1);
        made ??= new Catalog();
        made.set(op.schema);
        break;
    }
  }
}

/** @param catalog the schemas before the change; the change's own creates, drops and alters are entered in it */
export function decodeChange(r: ByteReader, catalog: Catalog): Change {
  const count = r.varint();
  const change: Op[] = [];
  for (let i = 0; i < count; i++) change.push(decodeOp(r, catalog));
  return change;
}

function decodeOp(r: ByteReader, catalog: Catalog): Op {
  const tag = r.u8();
  switch (tag) {
    case PUT: {
      const cid = r.varint();
      const types = catalog.types(cid);
      assert(types !== undefined, `a row of table ${cid}, whose schema is not known`);
      return { op: "put", cid, row: decodeRow(r, types) };
    }
    case DEL: {
      const cid = r.varint();
      return { op: "del", cid, id: r.varint() };
    }
    case CREATE: {
      const schema = decodeSchema(r);
      catalog.set(schema);
      return { op: "create", schema };
    }
    case DROP: {
      const cid = r.varint();
      catalog.delete(cid);
      return { op: "drop", cid };
    }
    case ALTER: {
      const schema = decodeSchema(r);
      const from: number[] = [];
      for (let slot = 0; slot <= schema.fields.length; slot++) from.push(r.varint() - 1);
      catalog.set(schema);
      return { op: "alter", schema, from };
    }
    default:
      assert(false, `op ${tag} is none that is known`);
  }
}

export function encodeSchema(w: ByteWriter, schema: CollectionSchema): void {
  w.varint(schema.cid);
  w.string(schema.name);
  w.varint(schema.fields.length);
  for (const [i, field] of schema.fields.entries()) {
    assert(field.slot === i + 1, `field ${field.name} has slot ${field.slot}`);
    w.string(field.name);
    encodeType(w, field.type);
    w.u8(field.required ? 1 : 0);
  }
  w.varint(schema.indexes.length);
  for (const index of schema.indexes) {
    w.string(index.field);
    w.varint(index.keys.length);
    for (const key of index.keys) w.string(key);
    w.u8(INDEX_KINDS.indexOf(index.kind));
    w.f64(index.ttlMs);
    w.string(index.ttlText);
  }
}

export function decodeSchema(r: ByteReader): CollectionSchema {
  const cid = r.varint();
  const name = r.string();
  const fields: Field[] = [];
  for (let left = r.varint(); left > 0; left--) {
    fields.push({ name: r.string(), type: decodeType(r), required: r.u8() === 1, slot: fields.length + 1 });
  }
  const indexes: IndexDef[] = [];
  for (let left = r.varint(); left > 0; left--) {
    const field = r.string();
    const keys: string[] = [];
    for (let more = r.varint(); more > 0; more--) keys.push(r.string());
    const kind = INDEX_KINDS[r.u8()];
    assert(kind !== undefined, `the index of ${field} is of no kind that is known`);
    indexes.push({ field, keys, kind, ttlMs: r.f64(), ttlText: r.string() });
  }
  return { cid, name, fields, indexes };
}

function encodeType(w: ByteWriter, type: FieldType): void {
  let levels = 0;
  let inner = type;
  while (inner.kind === "list") {
    levels++;
    inner = inner.of;
  }
  w.u8(levels);
  w.u8(KINDS.indexOf(inner.kind));
}

function decodeType(r: ByteReader): FieldType {
  const levels = r.u8();
  const kind = KINDS[r.u8()];
  assert(kind !== undefined && levels <= LIST_LEVELS, "a field is of no type that is known");
  let type: FieldType = { kind };
  for (let level = 0; level < levels; level++) type = { kind: "list", of: type };
  return type;
}
