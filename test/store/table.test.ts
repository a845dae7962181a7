import { describe, expect, test } from "bun:test";
import { ID_MAX } from "../../src/base/limits.ts";
import { toEnd } from "../../src/base/steps.ts";
import { addField, addIndex, changeIndex, dropField, renameField } from "../../src/schema/alter.ts";
import { createSchema } from "../../src/schema/declare.ts";
import type { CollectionSchema, IndexKind } from "../../src/schema/schema.ts";
import { type KeyRange, NOT_NULL_RANGE, WHOLE_RANGE } from "../../src/store/ordered_index.ts";
import { RowPages } from "../../src/store/row_pages.ts";
import { Store } from "../../src/store/store.ts";
import type { Table } from "../../src/store/table.ts";
import { Undo } from "../../src/store/undo.ts";
import { type Cell, Point, type Row, type ScalarKind } from "../../src/value/value.ts";

function index(kind: IndexKind, ttlMs = 0) {
  return { kind, ttlMs, ttlText: ttlMs === 0 ? "" : `${ttlMs}ms` };
}

function field(name: string, kind: ScalarKind, indexed?: IndexKind) {
  const clause = indexed === undefined ? null : index(indexed, indexed === "ttl" ? 1000 : 0);
  return { name, type: { kind }, required: false, index: clause };
}

function made(...fields: ReturnType<typeof field>[]): { store: Store; table: Table } {
  const store = new Store();
  store.apply([{ op: "create", schema: createSchema(store.nextCid, "t", fields) }]);
  return { store, table: tableOf(store) };
}

function tableOf(store: Store): Table {
  const table = store.table("t");
  if (table === undefined) throw new Error("no table t");
  return table;
}

function put(store: Store, ...rows: Row[]): void {
  store.apply(rows.map((row) => ({ op: "put", cid: 1, row })));
}

function ids(table: Table, name: string, range: KeyRange = WHOLE_RANGE, descending = false): Cell[] {
  const found: Cell[] = [];
  table.index(name, [])?.walk(range, descending, (row) => found.push(row[0] as Cell) > 0);
  return found;
}

function alter(
  store: Store,
  change: (schema: CollectionSchema) => { schema: CollectionSchema; from: readonly number[] },
  undo?: Undo,
): void {
  store.apply([{ op: "alter", ...change(tableOf(store).schema) }], undo);
}

describe("rows", () => {
  test("a new row is the one that was put, a replaced one stays itself and takes the cells", () => {
    const { store, table } = made(field("a", "int"), field("b", "text"));
    const first: Row = [1, 5, "x"];
    put(store, first);
    expect(table.get(1)).toBe(first);
    const second: Row = [1, 6, null];
    put(store, second);
    expect(table.get(1)).toBe(first);
    expect(first).toEqual([1, 6, null]);
    put(store, [2, 0, null]);
    second[1] = 99;
    expect(first[1]).toBe(6);
    store.check();
  });

  test("-0 is kept, though an index holds it for 0", () => {
    const { store, table } = made(field("a", "float", "unique"));
    put(store, [1, 0]);
    put(store, [1, -0]);
    expect(Object.is(table.get(1)?.[1], -0)).toBe(true);
    expect(table.index("a", [])?.holder(0)?.[0]).toBe(1);
    store.check();
  });

  test("the counter stands above every id, deleted ones too, and goes back with a rollback alone", () => {
    const { store, table } = made(field("a", "int"));
    expect(table.nextId).toBe(1);
    put(store, [5, 0]);
    expect(table.nextId).toBe(6);
    store.apply([{ op: "del", cid: 1, id: 5 }]);
    expect(table.nextId).toBe(6);
    put(store, [2, 0]);
    expect(table.nextId).toBe(6);
    const undo = new Undo();
    store.apply([{ op: "put", cid: 1, row: [40, 0] }], undo);
    store.rollback(undo);
    expect(table.nextId).toBe(6);
    put(store, [ID_MAX, 0]);
    expect(table.nextId).toBe(ID_MAX + 1);
    store.check();
  });

  test("what does not fit is a defect", () => {
    const { store } = made(field("a", "int"));
    expect(() => store.apply([{ op: "del", cid: 1, id: 1 }])).toThrow("not there");
    expect(() => put(store, [1, 2, 3])).toThrow("cells");
    expect(() => put(store, [0.5, 2])).toThrow("id");
    expect(() => store.apply([{ op: "drop", cid: 9 }])).toThrow("not there");
    expect(() => store.apply([{ op: "create", schema: createSchema(7, "t", [field("a", "int")]) }])).toThrow("second");
    store.replay([{ op: "del", cid: 1, id: 1 }]);
    put(store, [1, "no int"]);
    expect(() => store.check()).toThrow("slot 1");
  });

  test("a row made, changed and deleted in one change leaves nothing behind when it is taken back", () => {
    const { store, table } = made(field("a", "int", "sorted"));
    put(store, [1, 10]);
    const row = table.get(1);
    const undo = new Undo();
    store.apply(
      [
        { op: "put", cid: 1, row: [2, 5] },
        { op: "put", cid: 1, row: [2, 7] },
        { op: "del", cid: 1, id: 1 },
        { op: "put", cid: 1, row: [1, 8] },
        { op: "del", cid: 1, id: 2 },
      ],
      undo,
    );
    expect(ids(table, "a")).toEqual([1]);
    expect(table.get(1)).not.toBe(row as Row);
    store.check();
    store.rollback(undo);
    expect(table.get(1)).toBe(row as Row);
    expect(row).toEqual([1, 10]);
    expect(table.nextId).toBe(2);
    expect(undo.steps.length).toBe(0);
    store.check();
  });
});

describe("ordered indexes", () => {
  test("nulls come first, can be left out, and equal keys come by id both ways", () => {
    const { store, table } = made(field("at", "timestamp", "sorted"));
    put(store, [1, 7], [2, null], [3, 5], [4, 7], [5, null], [6, -3]);
    expect(ids(table, "at")).toEqual([2, 5, 6, 3, 1, 4]);
    expect(ids(table, "at", WHOLE_RANGE, true)).toEqual([1, 4, 3, 6, 2, 5]);
    expect(ids(table, "at", NOT_NULL_RANGE)).toEqual([6, 3, 1, 4]);
    expect(ids(table, "at", { lo: null, loOpen: false, hi: null, hiOpen: false })).toEqual([2, 5]);
    expect(ids(table, "at", { lo: null, loOpen: true, hi: 7, hiOpen: true }, true)).toEqual([3, 6]);
    expect(ids(table, "at", { lo: 8, loOpen: false, hi: 5, hiOpen: false })).toEqual([]);
    expect(table.index("at", [])?.count({ lo: 8, loOpen: false, hi: 5, hiOpen: false })).toBe(0);
  });

  test("two unique values swapped in one change", () => {
    const { store, table } = made(field("key", "text", "unique"));
    put(store, [1, "a"], [2, "b"], [3, null], [4, null]);
    put(store, [1, "b"], [2, "a"]);
    expect(table.index("key", [])?.holder("a")?.[0]).toBe(2);
    expect(table.index("key", [])?.holder("b")?.[0]).toBe(1);
    expect(table.index("key", [])?.holder("c")).toBeUndefined();
    expect(table.index("key", [])?.holder(null)).toBeUndefined();
    expect(table.uniques().map((one) => one.def.field)).toEqual(["key"]);
    store.check();
  });

  test("a unique index over a value held twice is found out", () => {
    const { store } = made(field("key", "text", "sorted"));
    put(store, [1, null], [2, null], [3, "z"], [4, "m"], [7, "z"], [9, "m"], [11, "m"]);
    alter(store, (schema) => ({
      schema: { ...schema, indexes: schema.indexes.map((one) => ({ ...one, kind: "unique" as const })) },
      from: [0, 1],
    }));
    expect(() => store.check()).toThrow("3 times");
  });

  test("ints past the safe ones keep their order", () => {
    const { store, table } = made(field("n", "int", "sorted"));
    const big = 2n ** 53n;
    put(store, [1, big + 1n], [2, big], [3, Number.MAX_SAFE_INTEGER], [4, -big - 1n], [5, 0], [6, big + 2n]);
    expect(ids(table, "n")).toEqual([4, 5, 3, 2, 1, 6]);
    expect(ids(table, "n", { lo: big, loOpen: true, hi: undefined, hiOpen: false })).toEqual([1, 6]);
    store.check();
  });

  test("a path's key is what it leads to", () => {
    const { store, table } = made(field("m", "json"));
    alter(store, (schema) => addIndex(schema, "m", ["n"], index("unique")));
    put(store, [1, '{"n":3}'], [2, '{"n":3.5}'], [3, "{}"], [4, '"n"'], [5, null], [6, '{"n":null}']);
    const path = table.index("m", ["n"]);
    expect(path?.holder(3)?.[0]).toBe(1);
    expect(path?.count(NOT_NULL_RANGE)).toBe(2);
    // Another text around the same value is no move.
    put(store, [1, '{"a":0,"n":3.0}']);
    expect(path?.holder(3)?.[0]).toBe(1);
    put(store, [1, '{"n":[1,{"a":2}]}']);
    expect(path?.holder(3)).toBeUndefined();
    put(store, [1, null]);
    expect(path?.count(NOT_NULL_RANGE)).toBe(1);
    expect(table.index("m", [])).toBeUndefined();
    store.check();
  });
});

test("places hold the rows that have a point", () => {
  const { store, table } = made(field("at", "geo", "geo"));
  put(store, [1, new Point(1, 1)], [2, null], [3, new Point(2, 2)]);
  expect(table.geo("at")?.size).toBe(2);
  put(store, [1, null], [2, new Point(0, 0)], [3, new Point(2, 2)]);
  store.check();
  const nearest: Cell[] = [];
  table.geo("at")?.nearest(0, 0, (row) => nearest.push(row[0] as Cell) > 0);
  expect(nearest).toEqual([2, 3]);
  const undo = new Undo();
  store.apply([{ op: "del", cid: 1, id: 2 }], undo);
  expect(table.geo("at")?.size).toBe(1);
  store.rollback(undo);
  expect(table.geo("at")?.size).toBe(2);
  expect(table.index("at", [])).toBeUndefined();
  store.check();
});

describe("alters", () => {
  test("a rename and a change of kind keep the index, and go back", () => {
    const { store, table } = made(field("at", "timestamp", "sorted"), field("n", "int"));
    put(store, [1, 7, 0], [2, 3, 0]);
    const undo = new Undo();
    alter(store, (schema) => renameField(schema, "at", "due"), undo);
    alter(store, (schema) => changeIndex(schema, "due", index("ttl", 5)), undo);
    expect(table.slotOf("at")).toBeUndefined();
    expect(table.slotOf("due")).toBe(1);
    expect(table.ttl).toEqual({ slot: 1, ttlMs: 5, index: table.index("due", []) as never });
    put(store, [3, 5, 0]);
    store.apply([{ op: "del", cid: 1, id: 3 }]);
    expect(ids(table, "due")).toEqual([2, 1]);
    store.check();
    store.rollback(undo);
    expect(table.ttl).toBeUndefined();
    expect(ids(table, "at")).toEqual([2, 1]);
    store.check();
  });

  test("a dropped field's cells go, and a field of its name starts null", () => {
    const { store, table } = made(field("a", "int", "sorted"), field("b", "text", "hash"));
    put(store, [1, 7, "x"], [2, 3, "y"]);
    const before = table.get(1);
    const undo = new Undo();
    alter(store, (schema) => dropField(schema, "a"), undo);
    expect(table.get(1)).toEqual([1, "x"]);
    expect(table.index("a", [])).toBeUndefined();
    alter(store, (schema) => addField(schema, field("a", "text", "sorted")), undo);
    expect(table.get(1)).toEqual([1, "x", null]);
    expect(ids(table, "a")).toEqual([1, 2]);
    put(store, [3, "z", "w"]);
    store.apply([{ op: "del", cid: 1, id: 3 }]);
    store.check();
    store.rollback(undo);
    expect(table.get(1)).toBe(before as Row);
    expect(before).toEqual([1, 7, "x"]);
    store.check();
  });

  test("an index dropped, its rows changed meanwhile and taken back, is whole again", () => {
    const { store, table } = made(field("a", "int", "sorted"));
    put(store, [1, 7], [2, 3], [3, 5]);
    const undo = new Undo();
    alter(store, (schema) => ({ schema: { ...schema, indexes: [] }, from: [0, 1] }), undo);
    store.apply(
      [
        { op: "put", cid: 1, row: [1, 0] },
        { op: "del", cid: 1, id: 2 },
        { op: "put", cid: 1, row: [2, 9] },
        { op: "put", cid: 1, row: [9, 9] },
      ],
      undo,
    );
    expect(table.index("a", [])).toBeUndefined();
    store.check();
    store.rollback(undo);
    expect(ids(table, "a")).toEqual([2, 3, 1]);
    store.check();
  });
});

describe("collections", () => {
  test("one dropped comes back whole, rows, counter and indexes", () => {
    const { store, table } = made(field("a", "int", "sorted"));
    put(store, [1, 7], [2, 3]);
    const bytes = store.memoryBytes;
    const undo = new Undo();
    store.apply([{ op: "drop", cid: 1 }], undo);
    expect(store.table("t")).toBeUndefined();
    expect(store.memoryBytes).toBe(0);
    store.apply([{ op: "create", schema: createSchema(2, "t", [field("b", "text")]) }], undo);
    store.apply([{ op: "put", cid: 2, row: [1, "x"] }], undo);
    expect(store.table("t")?.cid).toBe(2);
    expect(store.nextCid).toBe(3);
    store.check();
    store.rollback(undo);
    expect(store.table("t")).toBe(table);
    expect(store.tableById(2)).toBeUndefined();
    expect(store.nextCid).toBe(2);
    expect(store.memoryBytes).toBe(bytes);
    expect(ids(table, "a")).toEqual([2, 1]);
    store.check();
  });

  test("they are listed as they were created", () => {
    const store = new Store();
    const create = (cid: number, name: string) =>
      store.apply([{ op: "create", schema: createSchema(cid, name, [field("a", "int")]) }]);
    create(1, "b");
    create(2, "constructor");
    create(5, "a");
    const undo = new Undo();
    store.apply([{ op: "drop", cid: 1 }], undo);
    expect(store.tables().map((one) => one.schema.name)).toEqual(["constructor", "a"]);
    store.rollback(undo);
    expect(store.tables().map((one) => one.schema.name)).toEqual(["b", "constructor", "a"]);
    expect(store.nextCid).toBe(6);
  });
});

test("rows loaded at once make the table that rows put one by one make", () => {
  const schema = addIndex(
    createSchema(1, "t", [
      field("at", "timestamp", "sorted"),
      field("x", "float", "hash"),
      field("n", "int", "sorted"),
      field("key", "text", "unique"),
      field("where", "geo", "geo"),
      field("m", "json"),
    ]),
    "m",
    ["k"],
    index("sorted"),
  ).schema;
  const row = (id: number): Row => [
    id,
    id % 7 === 0 ? null : (id * 7919) % 1000,
    id % 5 === 0 ? -0 : (id * 31) % 17,
    id % 11 === 0 ? 2n ** 60n + BigInt(id % 3) : (id * 13) % 97,
    `key ${(id * 7919) % 10_007}`,
    id % 3 === 0 ? null : new Point(id % 180, id % 90),
    `{"k":${id % 4 === 0 ? `"${id % 9}"` : id % 50}}`,
  ];
  const count = 3000;
  const all = Array.from({ length: count }, (_, i) => i + 1);
  const loaded = new Store();
  const rows = new RowPages();
  for (const id of all) rows.push(row(id));
  toEnd(loaded.bulkLoad(schema, count + 10, rows));
  loaded.check();
  expect(tableOf(loaded).nextId).toBe(count + 10);
  const single = new Store();
  single.apply([{ op: "create", schema }]);
  for (const i of all) single.apply([{ op: "put", cid: 1, row: row(((i * 1103) % count) + 1) }]);
  single.check();
  expect(tableOf(single).count).toBe(count);
  expect(loaded.memoryBytes).toBe(single.memoryBytes);
  for (const def of schema.indexes) {
    if (def.kind === "geo") continue;
    for (const descending of [false, true]) {
      const [left, right] = [loaded, single].map((store) => {
        const found: Cell[] = [];
        tableOf(store)
          .index(def.field, def.keys)
          ?.walk(WHOLE_RANGE, descending, (one) => found.push(one[0] as Cell) > 0);
        return found;
      });
      expect(left?.length).toBe(count);
      expect(left).toEqual(right as Cell[]);
    }
  }
  put(loaded, row(count + 20));
  loaded.apply(all.slice(0, count / 2).map((id) => ({ op: "del", cid: 1, id })));
  loaded.check();
});
