import { expect, test } from "bun:test";
import { FIELDS } from "../../src/base/limits.ts";
import { addField, addIndex, changeIndex, dropField, renameField } from "../../src/schema/alter.ts";
import { createSchema } from "../../src/schema/declare.ts";
import { describeSchema } from "../../src/schema/describe.ts";
import { fieldOf, indexOf, ttlIndexOf, typesOf } from "../../src/schema/find.ts";
import type { CollectionSchema, IndexKind } from "../../src/schema/schema.ts";
import type { ScalarKind } from "../../src/value/value.ts";
import { codeOf } from "../harness/code_of.ts";

function index(kind: IndexKind, ttlMs = 0, ttlText = "") {
  return { kind, ttlMs, ttlText };
}

function field(name: string, kind: ScalarKind, indexed: IndexKind | null = null, required = false) {
  return { name, type: { kind }, required, index: indexed === null ? null : index(indexed) };
}

function jobs(): CollectionSchema {
  const plain = createSchema(3, "jobs", [
    field("payload", "json"),
    field("run_at", "timestamp", "sorted"),
    field("owner", "text", "hash", true),
  ]);
  return addIndex(plain, "payload", ["to"], index("unique")).schema;
}

test("a field added is the last, and null in old rows", () => {
  const before = jobs();
  const { schema, from } = addField(before, field("rank", "int", "sorted"));
  expect(from).toEqual([0, 1, 2, 3, -1]);
  expect(fieldOf(schema, "rank")).toEqual({ name: "rank", type: { kind: "int" }, required: false, slot: 4 });
  expect(indexOf(schema, "rank", [])?.kind).toBe("sorted");
  expect(before).toEqual(jobs());
  expect(typesOf(schema)).toEqual([{ kind: "json" }, { kind: "timestamp" }, { kind: "text" }, { kind: "int" }]);
});

test("what cannot be added", () => {
  expect(codeOf(() => addField(jobs(), field("must", "text", null, true)))).toBe("bad_schema");
  expect(codeOf(() => addField(jobs(), field("owner", "text")))).toBe("bad_schema");
  expect(codeOf(() => addField(jobs(), field("id", "int")))).toBe("bad_schema");
  expect(codeOf(() => addField(jobs(), field("p", "geo", "sorted")))).toBe("bad_schema");
  const full = createSchema(
    1,
    "t",
    Array.from({ length: FIELDS }, (_, i) => field(`f${i}`, "int")),
  );
  expect(codeOf(() => addField(full, field("more", "int")))).toBe("limit_passed");
});

test("a field dropped takes its indexes along and closes the gap", () => {
  const { schema, from } = dropField(jobs(), "payload");
  expect(from).toEqual([0, 2, 3]);
  expect(schema.fields.map(({ name, slot }) => [name, slot])).toEqual([
    ["run_at", 1],
    ["owner", 2],
  ]);
  expect(schema.indexes.map((one) => one.field)).toEqual(["run_at", "owner"]);
  expect(dropField(jobs(), "run_at").schema.indexes.map((one) => one.field)).toEqual(["owner", "payload"]);
});

test("the last field stays, and what is not there is not found", () => {
  const one = createSchema(1, "one", [field("x", "int")]);
  expect(codeOf(() => dropField(one, "x"))).toBe("bad_schema");
  expect(codeOf(() => dropField(one, "y"))).toBe("unknown_field");
  expect(codeOf(() => dropField(one, "id"))).toBe("bad_schema");
  expect(codeOf(() => renameField(one, "y", "z"))).toBe("unknown_field");
  expect(codeOf(() => addIndex(one, "y", [], index("hash")))).toBe("unknown_field");
  expect(codeOf(() => addIndex(one, "id", [], index("hash")))).toBe("bad_schema");
  expect(codeOf(() => changeIndex(one, "y", index("sorted")))).toBe("unknown_field");
});

test("a field renamed keeps its slot and its indexes", () => {
  const { schema, from } = renameField(jobs(), "payload", "body");
  expect(from).toEqual([0, 1, 2, 3]);
  expect(fieldOf(schema, "payload")).toBeUndefined();
  expect(fieldOf(schema, "body")?.slot).toBe(1);
  expect(indexOf(schema, "body", ["to"])?.kind).toBe("unique");
  expect(indexOf(schema, "payload", ["to"])).toBeUndefined();
  expect(codeOf(() => renameField(jobs(), "payload", "owner"))).toBe("bad_schema");
  expect(codeOf(() => renameField(jobs(), "payload", "payload"))).toBe("bad_schema");
  expect(codeOf(() => renameField(jobs(), "payload", "id"))).toBe("bad_schema");
});

test("one index a field, and one a path", () => {
  expect(codeOf(() => addIndex(jobs(), "owner", [], index("sorted")))).toBe("bad_schema");
  expect(codeOf(() => addIndex(jobs(), "payload", ["to"], index("hash")))).toBe("bad_schema");
  const { schema, from } = addIndex(jobs(), "payload", ["to", "name"], index("sorted"));
  expect(from).toEqual([0, 1, 2, 3]);
  expect(schema.indexes.length).toBe(4);
});

test("an ordered index turns into a ttl, another ttl, and back", () => {
  const ttl = changeIndex(jobs(), "run_at", index("ttl", 5000, "5s")).schema;
  expect(ttlIndexOf(ttl)).toEqual({ field: "run_at", keys: [], kind: "ttl", ttlMs: 5000, ttlText: "5s" });
  const longer = changeIndex(ttl, "run_at", index("ttl", 60_000, "1m")).schema;
  expect(ttlIndexOf(longer)?.ttlMs).toBe(60_000);
  const sorted = changeIndex(longer, "run_at", index("sorted")).schema;
  expect(sorted).toEqual(jobs());
});

test("what an index does not change from or to", () => {
  expect(codeOf(() => changeIndex(jobs(), "owner", index("sorted")))).toBe("bad_schema");
  expect(codeOf(() => changeIndex(jobs(), "payload", index("sorted")))).toBe("bad_schema");
  expect(codeOf(() => changeIndex(jobs(), "run_at", index("hash")))).toBe("bad_schema");
  expect(codeOf(() => changeIndex(jobs(), "run_at", index("ttl", 0, "0s")))).toBe("bad_schema");
  const ranked = addField(jobs(), field("rank", "int", "sorted")).schema;
  expect(codeOf(() => changeIndex(ranked, "rank", index("ttl", 5, "5ms")))).toBe("bad_schema");
  const expiring = changeIndex(jobs(), "run_at", index("ttl", 5, "5ms")).schema;
  const second = addField(expiring, field("seen", "timestamp", "sorted")).schema;
  expect(codeOf(() => changeIndex(second, "seen", index("ttl", 5, "5ms")))).toBe("bad_schema");
});

test("a schema is described as json in the order of its fields", () => {
  expect(describeSchema(jobs())).toBe(
    '{"name":"jobs","fields":[{"name":"payload","type":"json"},' +
      '{"name":"run_at","type":"timestamp","index":"sorted"},' +
      '{"name":"owner","type":"text","index":"hash","required":true}],' +
      '"paths":[{"path":"payload.to","index":"unique"}]}',
  );
  const list = { name: "tags", type: { kind: "list", of: { kind: "text" } }, required: false, index: null } as const;
  const seen = { name: "seen", type: { kind: "timestamp" }, required: false, index: index("ttl", 5, "7d") } as const;
  expect(describeSchema(createSchema(1, "é", [list, seen]))).toBe(
    '{"name":"é","fields":[{"name":"tags","type":"[text]"},{"name":"seen","type":"timestamp","index":"ttl(7d)"}]}',
  );
});
