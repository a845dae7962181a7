/** Random schemas, cells and changes that a store can be given, made against the model's rows. */

import { addField, addIndex, changeIndex, dropField, renameField } from "../../src/schema/alter.ts";
import { createSchema, type FieldClause, type IndexClause } from "../../src/schema/declare.ts";
import { fieldOf, indexOf, ttlIndexOf } from "../../src/schema/find.ts";
import type { CollectionSchema, IndexDef, IndexKind } from "../../src/schema/schema.ts";
import type { Op } from "../../src/store/change.ts";
import type { Key } from "../../src/store/ordered_index.ts";
import { type Cell, type FieldType, Float, Point, type Row } from "../../src/value/value.ts";
import { type Model, type ModelTable, plainKey, plainOrder } from "./model.ts";
import type { Random } from "./random.ts";

const TYPES: readonly FieldType[] = [
  { kind: "bool" },
  { kind: "int" },
  { kind: "float" },
  { kind: "text" },
  { kind: "bytes" },
  { kind: "timestamp" },
  { kind: "json" },
  { kind: "geo" },
  { kind: "list", of: { kind: "int" } },
  { kind: "list", of: { kind: "list", of: { kind: "text" } } },
];

const INDEXES: Record<FieldType["kind"], readonly IndexKind[]> = {
  bool: ["hash", "unique"],
  int: ["hash", "unique", "sorted"],
  float: ["hash", "unique", "sorted"],
  text: ["hash", "unique", "sorted"],
  bytes: ["hash", "unique"],
  timestamp: ["hash", "unique", "sorted", "ttl"],
  json: [],
  geo: ["geo"],
  list: [],
};

const INTS = [0, 1, 2, 3, -1, -2, 2 ** 53 - 1, 2n ** 53n, 2n ** 53n + 1n, -(2n ** 63n), 2n ** 63n - 1n];
const FLOATS = [0, -0, 0.5, 1, 1.5, -2.25, 2 ** 60, 1e300, -1e300, 5e-324];
const TEXTS = ["", "a", "b", "B", "aa", "é", "z", "\uffff", "😀", "日本", "a\u0000b"];
const TIMES = [0, 1, 2, 3, 1000, -1, 1_700_000_000_000, 1_700_000_000_001];
const JSON_SCALARS = ["null", "true", "false", "0", "1", "1.0", "2.5", "-3", '"a"', '"b"', "[1,2]", "[1]", '{"z":1}'];
const PATHS = [["k"], ["o", "k"], ["o"], ["__proto__"]];

export function randomCell(random: Random, type: FieldType): Cell {
  if (random.chance(0.15)) return null;
  switch (type.kind) {
    case "bool":
      return random.chance(0.5);
    case "int":
      return random.chance(0.7) ? random.below(40) - 20 : random.pick(INTS);
    case "float":
      return random.chance(0.5) ? random.below(40) / 4 : random.pick(FLOATS);
    case "text":
      return random.chance(0.5) ? random.pick(TEXTS) : `${random.pick(TEXTS)}${random.below(20)}`;
    case "timestamp":
      return random.chance(0.5) ? random.below(50) : random.pick(TIMES);
    case "bytes":
      return Uint8Array.from({ length: random.below(4) }, () => random.below(3) * 100);
    case "json":
      return randomJson(random);
    case "geo":
      return new Point(random.below(9) * 45 - 180, random.below(5) * 45 - 90);
    case "list":
      return Array.from({ length: random.below(4) }, () => randomCell(random, type.of));
  }
}

function randomJson(random: Random): string {
  if (random.chance(0.2)) return random.pick(JSON_SCALARS.slice(1));
  const scalar = () => (random.chance(0.5) ? random.pick(JSON_SCALARS) : String(random.below(30)));
  const parts: string[] = [];
  if (random.chance(0.8)) parts.push(`"k":${scalar()}`);
  const inner = random.below(4);
  if (inner < 2) parts.push(`"o":{"j":0,"k":${scalar()}}`);
  else if (inner === 2) parts.push(`"o":${scalar()}`);
  if (random.chance(0.2)) parts.push(`"__proto__":${scalar()}`);
  return `{${parts.join(",")}}`;
}

function indexClause(random: Random, kind: IndexKind): IndexClause {
  const ttlMs = kind === "ttl" ? 1 + random.below(1000) : 0;
  return { kind, ttlMs, ttlText: kind === "ttl" ? `${ttlMs}ms` : "" };
}

function randomField(random: Random, name: string, mayExpire: boolean): FieldClause {
  const type = random.pick(TYPES);
  const kinds = INDEXES[type.kind].filter((kind) => mayExpire || kind !== "ttl");
  const index = kinds.length > 0 && random.chance(0.6) ? indexClause(random, random.pick(kinds)) : null;
  return { name, type, required: false, index };
}

export function randomSchema(random: Random, cid: number): CollectionSchema {
  const clauses: FieldClause[] = [];
  const count = 1 + random.below(5);
  for (let i = 0; i < count; i++) {
    const mayExpire = !clauses.some((clause) => clause.index?.kind === "ttl");
    clauses.push(randomField(random, `f${i}`, mayExpire));
  }
  let schema = createSchema(cid, `c${cid}`, clauses);
  for (const field of schema.fields) {
    if (field.type.kind !== "json") continue;
    for (const keys of PATHS) {
      if (!random.chance(0.4)) continue;
      const kind = random.pick(["hash", "unique", "sorted"] as const);
      schema = addIndex(schema, field.name, keys, indexClause(random, kind)).schema;
    }
  }
  return schema;
}

export function randomRow(random: Random, table: ModelTable, id: number): Row {
  const row: Row = [id, ...table.schema.fields.map((field) => randomCell(random, field.type))];
  for (const index of table.schema.indexes) {
    if (index.kind !== "unique") continue;
    const slot = slotOf(table, index);
    const key = plainKey(row, slot, index.keys);
    if (key !== null && heldByAnother(table, index, key, id)) row[slot] = null;
  }
  return row;
}

function heldByAnother(table: ModelTable, index: IndexDef, key: Key, id: number): boolean {
  const slot = slotOf(table, index);
  for (const [other, row] of table.rows) {
    if (other !== id && plainOrder(plainKey(row, slot, index.keys), key) === 0) return true;
  }
  return false;
}

function hasDuplicates(table: ModelTable, slot: number, keys: readonly string[]): boolean {
  const held = [...table.rows.values()].map((row) => plainKey(row, slot, keys)).filter((key) => key !== null);
  held.sort(plainOrder);
  return held.some((key, i) => i > 0 && plainOrder(held[i - 1] as Key, key) === 0);
}

export function slotOf(table: ModelTable, index: IndexDef): number {
  const field = fieldOf(table.schema, index.field);
  if (field === undefined) throw new Error(`no field ${index.field}`);
  return field.slot;
}

/** Keys to ask for: mostly those of rows, so that ranges begin and end on them. */
export function randomKey(random: Random, table: ModelTable, index: IndexDef): Key {
  const rows = [...table.rows.values()];
  if (rows.length > 0 && random.chance(0.8)) {
    const key = plainKey(random.pick(rows), slotOf(table, index), index.keys);
    return index.keys.length > 0 ? asValue(key) : key;
  }
  const field = fieldOf(table.schema, index.field);
  if (field === undefined) throw new Error(`no field ${index.field}`);
  return index.keys.length === 0 ? randomCell(random, field.type) : random.pick([null, true, 1, new Float(2.5), "a"]);
}

/** A number with a fraction is never an int. */
function asValue(key: Key): Key {
  return typeof key === "number" && !Number.isInteger(key) ? new Float(key) : key;
}

/** One op that fits the model as it is, or none when chance finds nothing to do. */
export function randomOp(random: Random, model: Model): Op | undefined {
  const tables = [...model.tables.values()];
  if (tables.length === 0 || (tables.length < 3 && random.chance(0.02))) {
    return { op: "create", schema: randomSchema(random, model.nextCid) };
  }
  const table = random.pick(tables);
  const cid = table.schema.cid;
  const ids = [...table.rows.keys()];
  const dice = random.next();
  if (dice < 0.002) return { op: "drop", cid };
  if (dice < 0.05) return randomAlter(random, table);
  if (dice < 0.2 && ids.length > 0) return { op: "del", cid, id: random.pick(ids) };
  if (dice < 0.5 && ids.length > 0) {
    const id = random.pick(ids);
    const fresh = randomRow(random, table, id);
    const old = table.rows.get(id) as Row;
    // Most writes change some cells and leave the others.
    const row = fresh.map((cell, slot) => (slot > 0 && random.chance(0.5) ? (old[slot] as Cell) : cell));
    return { op: "put", cid, row };
  }
  const id = random.chance(0.9) ? table.nextId : table.nextId + random.below(5);
  return { op: "put", cid, row: randomRow(random, table, id) };
}

function randomAlter(random: Random, table: ModelTable): Op | undefined {
  const { schema } = table;
  const field = random.pick(schema.fields);
  const fresh = `f${random.below(1000)}`;
  const free = fieldOf(schema, fresh) === undefined;
  const mayExpire = ttlIndexOf(schema) === undefined;
  const dice = random.below(6);
  if (dice === 0 && free && schema.fields.length < 8) {
    return { op: "alter", ...addField(schema, randomField(random, fresh, mayExpire)) };
  }
  if (dice === 1 && schema.fields.length > 1) return { op: "alter", ...dropField(schema, field.name) };
  if (dice === 2 && free) return { op: "alter", ...renameField(schema, field.name, fresh) };
  if (dice === 3) {
    const held = indexOf(schema, field.name, [])?.kind;
    if (held !== "sorted" && held !== "ttl") return undefined;
    const toTtl = field.type.kind === "timestamp" && (mayExpire || held === "ttl");
    return {
      op: "alter",
      ...changeIndex(schema, field.name, indexClause(random, toTtl && random.chance(0.5) ? "ttl" : "sorted")),
    };
  }
  if (dice === 4) {
    const rest = schema.indexes.filter(() => random.chance(0.7));
    return { op: "alter", schema: { ...schema, indexes: rest }, from: [0, ...schema.fields.map(({ slot }) => slot)] };
  }
  const keys = field.type.kind === "json" ? random.pick(PATHS) : [];
  if (indexOf(schema, field.name, keys) !== undefined) return undefined;
  const kinds: readonly IndexKind[] = keys.length > 0 ? ["hash", "unique", "sorted"] : INDEXES[field.type.kind];
  const kind = kinds.length === 0 ? undefined : random.pick(kinds);
  if (kind === undefined || (kind === "ttl" && !mayExpire)) return undefined;
  if (kind === "unique" && hasDuplicates(table, field.slot, keys)) return undefined;
  return { op: "alter", ...addIndex(schema, field.name, keys, indexClause(random, kind)) };
}
