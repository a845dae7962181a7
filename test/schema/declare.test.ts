import { expect, test } from "bun:test";
import { FIELDS, LIST_LEVELS, NAME_LENGTH, PATH_KEYS } from "../../src/base/limits.ts";
import { Refusal } from "../../src/base/refusal.ts";
import { addIndex } from "../../src/schema/alter.ts";
import { createSchema, type FieldClause } from "../../src/schema/declare.ts";
import type { IndexKind } from "../../src/schema/schema.ts";
import type { FieldType, ScalarKind } from "../../src/value/value.ts";

const DAY_MS = 86_400_000;

function clause(name: string, type: FieldType | ScalarKind, index?: IndexKind, required = false): FieldClause {
  const ttl = index === "ttl";
  return {
    name,
    type: typeof type === "string" ? { kind: type } : type,
    required,
    index: index === undefined ? null : { kind: index, ttlMs: ttl ? DAY_MS : 0, ttlText: ttl ? "1d" : "" },
  };
}

function listOf(of: FieldType | ScalarKind): FieldType {
  return { kind: "list", of: typeof of === "string" ? { kind: of } : of };
}

function refusal(run: () => unknown): Refusal {
  try {
    run();
  } catch (refused) {
    if (refused instanceof Refusal) return refused;
    throw refused;
  }
  throw new Error("nothing was refused");
}

test("fields take slots from 1 in the order they are declared", () => {
  const schema = createSchema(7, "jobs", [clause("payload", "json"), clause("run_at", "timestamp", "sorted")]);
  expect(schema).toEqual({
    cid: 7,
    name: "jobs",
    fields: [
      { name: "payload", type: { kind: "json" }, required: false, slot: 1 },
      { name: "run_at", type: { kind: "timestamp" }, required: false, slot: 2 },
    ],
    indexes: [{ field: "run_at", keys: [], kind: "sorted", ttlMs: 0, ttlText: "" }],
  });
});

test("every pair of type and index is taken or refused", () => {
  const kinds: ScalarKind[] = ["bool", "int", "float", "text", "bytes", "timestamp", "json", "geo"];
  const types: FieldType[] = [...kinds.map((kind) => ({ kind })), listOf("int"), listOf("geo")];
  const taken: Record<IndexKind, string> = {
    hash: "bool int float text bytes timestamp",
    unique: "bool int float text bytes timestamp",
    sorted: "int float text timestamp",
    geo: "geo",
    ttl: "timestamp",
  };
  for (const [kind, allowed] of Object.entries(taken) as [IndexKind, string][]) {
    for (const type of types) {
      const declare = () => createSchema(1, "t", [clause("f", type, kind)]);
      if (type.kind !== "list" && allowed.split(" ").includes(type.kind)) {
        expect(declare().indexes[0]?.kind).toBe(kind);
      } else {
        const refused = refusal(declare);
        expect(refused.code).toBe("bad_schema");
        expect(refused.message).toContain(`@${kind}`);
        expect(refused.message).toContain("`f`");
      }
    }
  }
});

test("every pair of type and path index is taken or refused", () => {
  const kinds: ScalarKind[] = ["bool", "int", "float", "text", "bytes", "timestamp", "geo"];
  for (const kind of kinds) {
    const schema = createSchema(1, "t", [clause("f", kind)]);
    const refused = refusal(() => addIndex(schema, "f", ["k"], { kind: "hash", ttlMs: 0, ttlText: "" }));
    expect(refused.code).toBe("bad_schema");
    expect(refused.message).toContain("`f.k`");
  }
  const json = createSchema(1, "t", [clause("f", "json")]);
  for (const kind of ["hash", "unique", "sorted"] as const) {
    const { schema } = addIndex(json, "f", ["a", "b"], { kind, ttlMs: 0, ttlText: "" });
    expect(schema.indexes).toEqual([{ field: "f", keys: ["a", "b"], kind, ttlMs: 0, ttlText: "" }]);
  }
  for (const kind of ["geo", "ttl"] as const) {
    expect(refusal(() => addIndex(json, "f", ["a"], { kind, ttlMs: 5, ttlText: "5ms" })).code).toBe("bad_schema");
  }
  const deep = Array.from({ length: PATH_KEYS + 1 }, () => "k");
  expect(addIndex(json, "f", deep.slice(1), { kind: "hash", ttlMs: 0, ttlText: "" }).schema.indexes.length).toBe(1);
  expect(refusal(() => addIndex(json, "f", deep, { kind: "hash", ttlMs: 0, ttlText: "" })).code).toBe("limit_passed");
});

test("one ttl a collection, with a duration past zero", () => {
  expect(createSchema(1, "t", [clause("at", "timestamp", "ttl")]).indexes).toEqual([
    { field: "at", keys: [], kind: "ttl", ttlMs: DAY_MS, ttlText: "1d" },
  ]);
  const two = refusal(() => createSchema(1, "t", [clause("a", "timestamp", "ttl"), clause("b", "timestamp", "ttl")]));
  expect(two.message).toContain("`a`");
  const zero: FieldClause = {
    ...clause("a", "timestamp"),
    index: { kind: "ttl", ttlMs: 0, ttlText: "0s" },
  };
  expect(refusal(() => createSchema(1, "t", [zero])).code).toBe("bad_schema");
});

test("names that may not be", () => {
  const a = clause("a", "int");
  expect(refusal(() => createSchema(1, "_t", [a])).code).toBe("bad_schema");
  expect(refusal(() => createSchema(1, "t", [])).code).toBe("bad_schema");
  expect(refusal(() => createSchema(1, "t", [clause("id", "int")])).code).toBe("bad_schema");
  // No statement could read them.
  for (const word of ["true", "False", "NULL"]) {
    expect(refusal(() => createSchema(1, "t", [clause(word, "int")])).code).toBe("bad_schema");
  }
  expect(refusal(() => createSchema(1, "t", [a, a])).message).toContain("`a`");
  // Case tells names apart, and what an object's prototype has is as good a name as any.
  const names = ["ID", "A", "a", "_a", "__proto__", "constructor", "toString"];
  const schema = createSchema(
    1,
    "__proto__x".slice(2),
    names.map((name) => clause(name, "int")),
  );
  expect(schema.fields.map((field) => field.name)).toEqual(names);
});

test("names are as long as their limit, counted in code points", () => {
  const long = "𝒜".repeat(NAME_LENGTH);
  expect(createSchema(1, long, [clause(long, "int")]).name).toBe(long);
  expect(refusal(() => createSchema(1, `${long}x`, [clause("a", "int")])).code).toBe("limit_passed");
  expect(refusal(() => createSchema(1, "t", [clause(`${long}x`, "int")])).code).toBe("limit_passed");
});

test("as many fields as the limit", () => {
  const many = Array.from({ length: FIELDS + 1 }, (_, i) => clause(`f${i}`, "int"));
  expect(createSchema(1, "t", many.slice(1)).fields.length).toBe(FIELDS);
  expect(refusal(() => createSchema(1, "t", many)).code).toBe("limit_passed");
});

test("lists nest to their limit and hold no json", () => {
  let type: FieldType = { kind: "int" };
  for (let level = 0; level < LIST_LEVELS; level++) type = listOf(type);
  expect(createSchema(1, "t", [clause("a", type)]).fields[0]?.type).toEqual(type);
  expect(refusal(() => createSchema(1, "t", [clause("a", listOf(type))])).code).toBe("limit_passed");
  expect(refusal(() => createSchema(1, "t", [clause("a", listOf("json"))])).code).toBe("bad_schema");
  expect(refusal(() => createSchema(1, "t", [clause("a", listOf(listOf("json")))])).code).toBe("bad_schema");
});
