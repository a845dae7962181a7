import { expect, test } from "bun:test";
import { ByteReader, ByteWriter } from "../../src/base/bytes.ts";
import { ID_MAX, LIST_LEVELS } from "../../src/base/limits.ts";
import { toEnd } from "../../src/base/steps.ts";
import { createSchema } from "../../src/schema/declare.ts";
import type { CollectionSchema } from "../../src/schema/schema.ts";
import type { Change } from "../../src/store/change.ts";
import { Catalog, decodeChange, decodeSchema, encodeChange, encodeSchema } from "../../src/store/encoding.ts";
import { encodeHead, encodeSlice, START, StateLoader } from "../../src/store/state.ts";
import { Store } from "../../src/store/store.ts";
import { type FieldType, Point } from "../../src/value/value.ts";
import { randomSchema } from "./chance.ts";
import { withRandom } from "./random.ts";

function clause(name: string, type: FieldType) {
  return { name, type, required: false, index: null };
}

function encoded(store: Store, change: Change): Uint8Array {
  const w = new ByteWriter();
  encodeChange(w, store, change);
  return Uint8Array.from(w.view());
}

test("schemas come back as they went in", () => {
  withRandom((random) => {
    let deep: FieldType = { kind: "bytes" };
    for (let level = 0; level < LIST_LEVELS; level++) deep = { kind: "list", of: deep };
    const odd: CollectionSchema = {
      ...createSchema(2 ** 40, "日本😀", [
        { ...clause("__proto__", deep), required: true },
        clause("é", { kind: "json" }),
      ]),
      indexes: [
        { field: "é", keys: ["__proto__", "a b", "1", ""], kind: "unique", ttlMs: 0, ttlText: "" },
        { field: "é", keys: [], kind: "ttl", ttlMs: 31_536_000_000_000, ttlText: "365000d" },
      ],
    };
    for (const schema of [odd, ...Array.from({ length: 50 }, (_, cid) => randomSchema(random, cid + 1))]) {
      const w = new ByteWriter();
      encodeSchema(w, schema);
      const r = new ByteReader(Uint8Array.from(w.view()));
      expect(decodeSchema(r)).toEqual(schema);
      expect(r.remaining).toBe(0);
    }
  });
});

test("a change that makes, alters and drops a collection between its rows", () => {
  const store = new Store();
  const first = createSchema(1, "t", [clause("a", { kind: "int" })]);
  store.apply([{ op: "create", schema: first }]);
  const second = createSchema(2, "u", [clause("p", { kind: "geo" }), clause("t", { kind: "text" })]);
  const altered = {
    ...first,
    fields: [...first.fields, { name: "b", type: { kind: "text" } as const, required: false, slot: 2 }],
  };
  const change: Change = [
    { op: "put", cid: 1, row: [ID_MAX, 2n ** 62n] },
    { op: "create", schema: second },
    { op: "put", cid: 2, row: [1, new Point(-0, 90), "\ud800"] },
    { op: "alter", schema: altered, from: [0, 1, -1] },
    { op: "put", cid: 1, row: [3, null, "after"] },
    { op: "del", cid: 1, id: ID_MAX },
    { op: "drop", cid: 2 },
  ];
  const catalog = new Catalog([first]);
  const r = new ByteReader(encoded(store, change));
  expect(decodeChange(r, catalog)).toEqual(change);
  expect(r.remaining).toBe(0);
  expect(catalog.schema(1)).toEqual(altered);
  expect(catalog.schema(2)).toBeUndefined();
  expect(store.table("t")?.schema).toBe(first);
});

test("an empty change is one byte", () => {
  expect([...encoded(new Store(), [])]).toEqual([0]);
  expect(decodeChange(new ByteReader(Uint8Array.of(0)), new Catalog())).toEqual([]);
});

test("bytes that are no change are a broken assumption, not a change", () => {
  const catalog = new Catalog();
  expect(() => decodeChange(new ByteReader(Uint8Array.of(1, 9)), catalog)).toThrow("none that is known");
  expect(() => decodeChange(new ByteReader(Uint8Array.of(1, 1, 7, 1)), catalog)).toThrow("not known");
  expect(() => decodeChange(new ByteReader(Uint8Array.of(2, 4, 1)), catalog)).toThrow();
  expect(() => encoded(new Store(), [{ op: "put", cid: 4, row: [1] }])).toThrow("not there");
});

test("a state is cut where rows or bytes say, and counters outlive their rows", () => {
  const store = new Store();
  const schema = (cid: number, name: string) => createSchema(cid, name, [clause("a", { kind: "text" })]);
  store.apply([
    { op: "create", schema: schema(1, "empty") },
    { op: "create", schema: schema(2, "t") },
    { op: "create", schema: schema(3, "gone") },
    { op: "create", schema: schema(4, "u") },
    { op: "drop", cid: 3 },
    { op: "put", cid: 1, row: [8, "x"] },
    { op: "del", cid: 1, id: 8 },
    { op: "put", cid: 2, row: [0, "x".repeat(100)] },
    { op: "put", cid: 2, row: [2, "x".repeat(100)] },
    { op: "put", cid: 2, row: [3, "x"] },
    { op: "put", cid: 4, row: [1, null] },
    { op: "drop", cid: 4 },
    { op: "create", schema: schema(9, "u") },
    { op: "put", cid: 9, row: [1, null] },
    { op: "drop", cid: 9 },
    { op: "create", schema: schema(12, "last") },
    { op: "drop", cid: 12 },
  ]);
  const w = new ByteWriter();
  const loader = new StateLoader();
  encodeHead(w, store);
  loader.head(new ByteReader(Uint8Array.from(w.view())));
  const places = [];
  for (let place = START; ; ) {
    w.reset();
    const next = encodeSlice(w, store, place, 2, 50);
    if (next === undefined) break;
    loader.slice(new ByteReader(Uint8Array.from(w.view())));
    places.push([next.cid, next.id]);
    place = next;
  }
  expect(w.length).toBe(0);
  expect(places).toEqual([
    [2, 0],
    [2, 2],
    [2, 3],
  ]);
  const loaded = new Store();
  toEnd(loader.finish(loaded));
  loaded.check();
  expect(loaded.nextCid).toBe(13);
  expect(loaded.tables().map((table) => [table.cid, table.nextId, table.count])).toEqual([
    [1, 9, 0],
    [2, 4, 3],
  ]);
});
