/**
 * Every chain of the shared vectors, rendered byte for byte or refused by the code it names. The vectors hold no chain
 * this client leaves out on purpose; the clauses it leaves out are listed here, and a vector that used one would fail.
 */

import { describe, expect, test } from "bun:test";
import {
  and,
  bucket,
  countDistinct,
  distance,
  expr,
  FenecError,
  first,
  from,
  inc,
  last,
  not,
  or,
  raw,
  type Statement,
} from "../../src/client/index.ts";

/** Clauses no chain can write, and why. */
const LEFT_OUT: ReadonlyMap<string, string> = new Map([
  ["match", "text ranking: the server has none"],
  ["rerank", "vectors: the server has none"],
  ["fuse", "vectors and text ranking: the server has none"],
  ["facet", "facets: the server has none"],
  ["lookup", "lookups: the server has none"],
  ["near.ef", "the width of a vector index's search: a near over points has none"],
]);

interface Vector {
  readonly n: number;
  readonly of: string;
  readonly chain: readonly Step[];
  readonly text?: string;
  readonly params?: readonly unknown[];
  readonly refused?: string;
}
type Step = Readonly<Record<string, unknown>>;

const vectors: readonly Vector[] = (await Bun.file(new URL("../cases/builder-vectors.jsonl", import.meta.url)).text())
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => JSON.parse(line) as Vector);

const SPECIAL: ReadonlyMap<string, (of: never) => unknown> = new Map<string, (of: never) => unknown>([
  ["!raw", ([text, ...values]: [string, ...unknown[]]) => raw(text, ...values.map(decode))],
  ["!expr", ([text, ...values]: [string, ...unknown[]]) => expr(text, ...values.map(decode))],
  ["!or", (of: unknown[]) => or(...of.map((one) => decode(one) as object))],
  ["!and", (of: unknown[]) => and(...of.map((one) => decode(one) as object))],
  ["!not", (of: unknown) => not(decode(of) as object)],
  ["!inc", (by: number) => inc(by)],
  ["!as", ([of, name]: [unknown, string]) => (decode(of) as ReturnType<typeof expr>).as(name)],
  ["!bucket", ([field, interval]: [string, string]) => bucket(field, interval)],
  ["!distinct", (field: string) => countDistinct(field)],
  ["!distance", ([field, point]: [string, number[]]) => distance(field, point)],
  ["!first", ([field, by]: [string, string?]) => first(field, by)],
  ["!last", ([field, by]: [string, string?]) => last(field, by)],
  ["!date", (text: string) => new Date(text)],
  ["!f32", (numbers: number[]) => new Float32Array(numbers)],
]);

function decode(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(decode);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  const special = SPECIAL.get(entries[0]?.[0] ?? "");
  if (special !== undefined) return special(entries[0]?.[1] as never);
  return Object.fromEntries(entries.map(([key, held]) => [key, decode(held)]));
}

type Chain = ReturnType<typeof from>;

function render(chain: readonly Step[]): Statement {
  let query: Chain | undefined;
  for (const step of chain) {
    const name = Object.keys(step)[0] ?? "";
    const given = decode(step[name]);
    const args = Array.isArray(given) ? (given as never[]) : [given as never];
    const options = (decode(step["opt"]) ?? {}) as object;
    const at = query as Chain;
    switch (name) {
      case "from":
        query = from(given as string);
        break;
      case "select":
        query = at.select(args) as unknown as Chain;
        break;
      case "where":
        query = at.where(...(args as unknown as [never, never]));
        break;
      case "orWhere":
        query = at.orWhere(...(args as unknown as [never, never]));
        break;
      case "group":
        query = at.group(...args);
        break;
      case "order":
        query = at.order(...(args as unknown as [never]));
        break;
      case "near":
        query = at.near(...(args as unknown as [never, never]));
        break;
      case "limit":
      case "offset":
      case "require":
        query = at[name](given as number);
        break;
      case "as":
        if (given === "count") return at.toCount();
        if (given === "first") return at.toFirst();
        return given === "explain" ? at.toExplain() : at.toFenecQL();
      case "put":
        return at.toInsert(given as object as Readonly<Record<string, unknown>>, options);
      case "set":
        return at.toUpdate(given as Readonly<Record<string, unknown>>, options);
      case "del":
        return at.toDelete(options);
      case "upsert": {
        const [documents, patch] = given as [Readonly<Record<string, unknown>>, Readonly<Record<string, unknown>>];
        return at.toUpsert(documents, patch, options);
      }
      default:
        throw new Error(`${name} is left out: ${LEFT_OUT.get(name) ?? "it is not known"}`);
    }
  }
  throw new Error("a chain without an end");
}

function codeOf(run: () => unknown): string | undefined {
  try {
    run();
  } catch (error) {
    if (error instanceof FenecError) {
      expect(error.status).toBeUndefined();
      return error.code;
    }
    throw error;
  }
  return undefined;
}

describe("the shared vectors", () => {
  for (const vector of vectors) {
    test(`${vector.n} ${vector.of}`, () => {
      if (vector.refused !== undefined) {
        expect(codeOf(() => render(vector.chain))).toBe(vector.refused);
      } else {
        const [text, params] = render(vector.chain);
        expect({ text, params }).toEqual({ text: vector.text as string, params: vector.params as unknown[] });
      }
    });
  }

  test("none of them is left out", () => {
    expect(vectors.length).toBe(132);
    const steps = new Set(vectors.flatMap((vector) => vector.chain.flatMap((step) => Object.keys(step))));
    expect([...steps].filter((step) => LEFT_OUT.has(step))).toEqual([]);
  });
});

describe("beyond the vectors", () => {
  test("a claim ordered by the distance from a point binds the point after the patch and the filter", () => {
    const claim = from("rides")
      .where(raw("run_at <= now()"))
      .where("state", "open")
      .order(raw("distance(pickup, ?)", [29.029, 41.049]))
      .limit(1)
      .toUpdate({ owner: "c1", run_at: expr("now() + ?", 30000), attempts: inc(1) }, { returning: true });
    expect(claim).toEqual([
      "set rides {owner: $1, run_at: now() + $2, attempts: coalesce(attempts, 0) + $3} where run_at <= now() and " +
        "state = $4 order distance(pickup, $5) asc limit 1 returning *",
      ["c1", 30000, 1, "open", [29.029, 41.049]],
    ]);
  });

  test("a step gives a new chain and leaves the old one", () => {
    const base = from("jobs").where("queue", "mail");
    base.where("attempts", ">", 3).order("run_at").limit(4).select("id");
    expect(base.toFenecQL()).toEqual(["get jobs where queue = $1", ["mail"]]);
  });

  test("a ? inside a string literal is no place for a value", () => {
    expect(from("jobs").where(raw(`error = "why?" and owner = ? and note = 'it\\'s?'`, "w1")).toFenecQL()).toEqual([
      `get jobs where error = "why?" and owner = $1 and note = 'it\\'s?'`,
      ["w1"],
    ]);
  });

  test("orWhere takes all so far as its left side, however it came together", () => {
    const chain = from("jobs").where("a", 1).orWhere("b", 2).orWhere({ c: 3, d: 4 }).where("e", 5);
    expect(chain.toFenecQL()[0]).toBe("get jobs where (a = $1 or b = $2 or (c = $3 and d = $4)) and e = $5");
    expect(from("jobs").orWhere("a", 1).toFenecQL()[0]).toBe("get jobs where a = $1");
  });

  test("an expression may stand for a value, and a raw may not", () => {
    expect(from("jobs").where("run_at", "<=", expr("now() - ?", 5)).toFenecQL()).toEqual([
      "get jobs where run_at <= now() - $1",
      [5],
    ]);
    expect(codeOf(() => from("jobs").where("run_at", "<=", raw("now()")).toFenecQL())).toBe("bad-value");
    expect(codeOf(() => from("jobs").where("attempts", inc(1)).toFenecQL())).toBe("bad-value");
  });

  test("what no field can hold is refused, not sent as null", () => {
    for (const value of [undefined, Number.NaN, Number.POSITIVE_INFINITY, () => 1, Symbol("s"), new Date("soon")]) {
      expect(codeOf(() => from("jobs").where("a", "=", value).toFenecQL())).toBe("bad-value");
      expect(codeOf(() => from("jobs").toInsert({ a: value }))).toBe("bad-value");
    }
  });

  test("restrict keeps what a raw says from reaching over it", () => {
    const due = raw("run_at <= now()");
    const text = (chain: ReturnType<typeof from>): string => chain.restrict(due).toFenecQL()[0];
    expect(text(from("jobs"))).toBe("get jobs where run_at <= now()");
    expect(text(from("jobs").where({ a: 1, b: 2 }))).toBe("get jobs where a = $1 and b = $2 and run_at <= now()");
    expect(text(from("jobs").where("a", 1).orWhere("b", 2))).toBe(
      "get jobs where (a = $1 or b = $2) and run_at <= now()",
    );
    expect(text(from("jobs").where(raw("a = 1 or b = 2")))).toBe("get jobs where (a = 1 or b = 2) and run_at <= now()");
    expect(text(from("jobs").where("c", 3).where(raw("a = 1 or b = 2")))).toBe(
      "get jobs where (c = $1 and a = 1 or b = 2) and run_at <= now()",
    );
    expect(text(from("jobs").where(raw("a = 1")).orWhere(raw("b = 2")))).toBe(
      "get jobs where (a = 1 or b = 2) and run_at <= now()",
    );
  });

  test("names that are properties of every object are names like others", () => {
    const row = JSON.parse('{"__proto__": 1, "constructor": 2, "toString": 3}') as Readonly<Record<string, unknown>>;
    expect(from("constructor").toInsert(row)).toEqual([
      "put constructor {__proto__: $1, constructor: $2, toString: $3}",
      [1, 2, 3],
    ]);
    expect(
      codeOf(() =>
        from("jobs")
          .where({ a: { toString: 1 } })
          .toFenecQL(),
      ),
    ).toBe("unknown-operator");
  });

  test("conditions nested past the bound are refused, not a crash", () => {
    let condition = not({ a: 1 });
    for (let i = 0; i < 100_000; i++) condition = not(condition);
    expect(codeOf(() => from("jobs").where(condition).toFenecQL())).toBe("too-deep");
  });

  test("a filter that came out empty does not open a write", () => {
    expect(codeOf(() => from("jobs").where({}).toDelete())).toBe("unbounded-write");
    expect(
      codeOf(() =>
        from("jobs")
          .where(or(and(), not({})))
          .toUpdate({ a: 1 }),
      ),
    ).toBe("unbounded-write");
  });

  test("a list of one document is put without brackets", () => {
    expect(from("jobs").toInsert([{ a: 1 }])[0]).toBe("put jobs {a: $1}");
  });

  test("a returning that is no list is refused, not passed over", () => {
    const one = from("jobs").where("a", 1);
    for (const returning of ["id", "*", 1, null, {}]) {
      expect(codeOf(() => one.toDelete({ returning: returning as unknown as true }))).toBe("bad-returning");
    }
    expect(one.toDelete({ returning: false as unknown as true })[0]).toBe("del jobs where a = $1");
  });

  test("an offset of 0 is none, for a count and a write as well", () => {
    const page = from("jobs").where("a", 1).offset(5).offset(0);
    expect(page.toCount()[0]).toBe("get jobs where a = $1 count");
    expect(page.toDelete()[0]).toBe("del jobs where a = $1");
    expect(from("jobs").offset(0).toInsert({ a: 1 })[0]).toBe("put jobs {a: $1}");
    expect(codeOf(() => from("jobs").where("a", 1).offset(1).toDelete())).toBe("write-with-offset");
  });

  test("a chain bound to nothing says so when run", async () => {
    await expect(from("jobs").rows()).rejects.toMatchObject({ code: "not-bound", status: undefined });
  });
});
