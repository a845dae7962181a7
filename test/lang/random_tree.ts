/** Random statements as trees, in the one form the parser gives them: what a text can say, and much nobody would. */

import { INNER_GET_LEVELS } from "../../src/base/limits.ts";
import type {
  Assignment,
  BinaryOp,
  CallExpr,
  ConstExpr,
  CountExpr,
  Expr,
  FieldClause,
  GetStatement,
  IndexClause,
  OrderKey,
  ParamExpr,
  Returning,
  SelectItem,
  Statement,
} from "../../src/lang/ast.ts";
import { columnText } from "../../src/lang/clauses.ts";
import { listConstant, objectConstant } from "../../src/lang/constant.ts";
import { type FieldType, Float, type Value } from "../../src/value/value.ts";
import type { Random } from "../store/random.ts";

/**
 * Fields and collections are called by the language's own words as often as not. Left out are those
 * that cannot always be told from what they mean: `null`, `true`, `false`, `case` before a `when`, and `returning`, which
 * in `order by returning * ...` is the clause.
 */
const NAMES = [
  ..."a b owner run_at attempts payload _x Übung görev_2 kişi 名前 é".split(" "),
  ..."group key text error at name user limit order where count select offset require by from into set".split(" "),
  ..."asc desc as and or in is has then when else end near having field to if exists on get put del new sum".split(" "),
];
const KEYS = ["a", "to", "group", "in", "x1", "ключ"];
const BINARY: readonly BinaryOp[] = ["+", "-", "*", "/", "=", "!=", "<", "<=", ">", ">=", "~", "has"];
const FUNCTIONS = ["now", "coalesce", "greatest", "least", "lower", "upper", "len", "timestamp", "distance", "within"];
const FLOATS = ["0.5", "1.50", "2.0", "1e3", "1E-2", "19.99", "6.022e+23", "0.1", "123456789.125", "-0.0", "-7.25"];
const TEXTS = [
  "",
  "w1:1842",
  "it's",
  'say "hi"',
  "two\nlines\ttab\r\0nul",
  "back\\slash",
  "-- no comment # either",
  "?0 $1 [{",
  "çam 😀",
  "\ud800",
  "null",
];

export class TreeMaker {
  readonly #random: Random;
  #innerGets = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  name(): string {
    return this.#random.pick(NAMES);
  }

  #some<T>(most: number, make: () => T): T[] {
    return Array.from({ length: this.#random.below(most + 1) }, make);
  }

  #maybe<T>(make: () => T): T | null {
    return this.#random.chance(0.4) ? make() : null;
  }

  scalar(): Value {
    const random = this.#random;
    switch (random.below(7)) {
      case 0:
        return random.pick([null, true, false]);
      case 1:
        return random.below(100);
      case 2:
        return random.pick([-1, -30_000, 2 ** 53 - 1, -(2 ** 53) + 1, 0]);
      case 3:
        return random.pick([2n ** 63n - 1n, -(2n ** 63n), 2n ** 53n, 9007199254740993n]);
      case 4: {
        const text = random.pick(FLOATS);
        const n = Number(text);
        return String(n) === text ? new Float(n) : new Float(n, text);
      }
      default:
        return random.pick(TEXTS);
    }
  }

  constant(): ConstExpr {
    return { kind: "const", value: this.scalar() };
  }

  path(): Expr {
    const keys = this.#random.chance(0.3) ? this.#some(3, () => this.#random.pick(KEYS)) : [];
    return { kind: "path", field: this.name(), keys, at: 0 };
  }

  param(): ParamExpr {
    return { kind: "param", index: this.#random.below(12) };
  }

  expr(depth: number): Expr {
    const random = this.#random;
    if (depth <= 0) return random.chance(0.4) ? this.constant() : random.chance(0.7) ? this.path() : this.param();
    const deeper = () => this.expr(depth - 1 - random.below(2));
    switch (random.below(14)) {
      case 0:
        return { kind: "unary", op: "-", of: deeper() };
      case 1:
        return { kind: "unary", op: "not", of: deeper() };
      case 2:
        return { kind: "and", of: [deeper(), deeper(), ...this.#some(2, deeper)] };
      case 3:
        return { kind: "or", of: [deeper(), deeper(), ...this.#some(2, deeper)] };
      case 4:
        return { kind: "in", left: deeper(), list: this.#some(4, deeper) };
      case 5:
        return { kind: "isNull", of: deeper(), not: random.chance(0.5) };
      case 6:
        return this.call(depth);
      case 7: {
        const branch = () => {
          const then = deeper();
          return { when: deeper(), then };
        };
        const whens = [branch(), ...this.#some(2, branch)];
        return { kind: "case", whens, otherwise: this.#maybe(deeper) };
      }
      case 8: {
        const items = this.#some(4, deeper);
        return items.every((item) => item.kind === "const") ? listConstant(items) : { kind: "list", items };
      }
      case 9: {
        const keys = new Set(this.#some(4, () => random.pick([...NAMES, "a b", "", "__proto__", 'q"uote'])));
        const entries = [...keys].map((key) => ({ key, value: deeper() }));
        return entries.every(({ value }) => value.kind === "const")
          ? objectConstant(entries)
          : { kind: "object", entries };
      }
      case 10:
        if (this.#innerGets === INNER_GET_LEVELS || random.chance(0.7)) return this.path();
        return { kind: "inGet", left: deeper(), get: this.#innerGet(depth - 2) };
      default:
        return { kind: "binary", op: random.pick(BINARY), left: deeper(), right: deeper() };
    }
  }

  #innerGet(depth: number): GetStatement {
    this.#innerGets++;
    const get = this.get(depth);
    this.#innerGets--;
    return get;
  }

  call(depth: number): CallExpr {
    const random = this.#random;
    const plain = { kind: "call" as const, star: false, distinct: false, by: null, at: 0 };
    const deeper = () => this.expr(depth - 1);
    switch (random.below(6)) {
      case 0:
        return { ...plain, name: "count", args: [], star: true };
      case 1:
        return { ...plain, name: "count", args: [deeper()], distinct: true };
      case 2:
        return { ...plain, name: random.pick(["first", "last"]), args: [deeper()], by: this.#maybe(deeper) };
      case 3: {
        const interval: Expr = random.chance(0.6)
          ? { kind: "duration", text: random.pick(["15m", "250ms", "1h", "7d", "3mo", "1y", "2w", "10s"]) }
          : deeper();
        return { ...plain, name: "bucket", args: [deeper(), interval] };
      }
      default:
        return { ...plain, name: random.pick(FUNCTIONS), args: this.#some(3, deeper) };
    }
  }

  count(): CountExpr {
    return this.#random.chance(0.3) ? this.param() : { kind: "const", value: this.#random.below(1000) };
  }

  order(): OrderKey[] {
    return this.#some(3, () => ({ expr: this.expr(2), desc: this.#random.chance(0.4) }));
  }

  item(): SelectItem & { kind: "item" } {
    const expr = this.#random.chance(0.5) ? this.path() : this.expr(2);
    const as = this.#maybe(() => this.name());
    return { kind: "item", expr, as, text: as ?? columnText(expr) };
  }

  returning(): Returning {
    if (this.#random.chance(0.3)) return { kind: "all" };
    const items = [this.item(), ...this.#some(2, () => this.item())];
    return {
      kind: "list",
      items: items.map((item) => (item.as === null && item.expr.kind !== "path" ? this.#named(item) : item)),
    };
  }

  #named(item: SelectItem & { kind: "item" }): SelectItem & { kind: "item" } {
    const as = this.name();
    return { ...item, as, text: as };
  }

  get(depth: number): GetStatement {
    const random = this.#random;
    return {
      kind: "get",
      collection: this.name(),
      at: 0,
      select: this.#some(3, () => (random.chance(0.2) ? { kind: "star" } : this.item())),
      where: this.#maybe(() => this.expr(depth)),
      near: random.chance(0.1) ? { field: this.name(), point: this.expr(1), at: 0 } : null,
      order: this.order(),
      limit: this.#maybe(() => this.count()),
      offset: this.#maybe(() => this.count()),
      count: random.chance(0.2),
      group: random.chance(0.2) ? [this.expr(1), ...this.#some(2, () => this.expr(1))] : [],
      having: random.chance(0.1) ? this.expr(2) : null,
      require: this.#maybe(() => random.below(50)),
    };
  }

  assignments(): Assignment[] {
    const entries: Assignment[] = [];
    const seen = new Set<string>();
    for (let left = this.#random.below(5); left > 0; left--) {
      const isQuoted = this.#random.chance(0.1);
      const field = isQuoted ? this.#random.pick(["a b", "", "1x", "a.b"]) : this.name();
      const keys = !isQuoted && this.#random.chance(0.3) ? this.#some(2, () => this.#random.pick(KEYS)) : [];
      const identity = JSON.stringify([field, keys]);
      if (seen.has(identity)) continue;
      seen.add(identity);
      entries.push({ field, keys, value: this.expr(2), at: 0 });
    }
    return entries;
  }

  #pick() {
    return {
      where: this.#maybe(() => this.expr(3)),
      order: this.order(),
      limit: this.#maybe(() => this.count()),
      returning: this.#maybe(() => this.returning()),
      require: this.#maybe(() => this.#random.below(50)),
    };
  }

  set(): Statement & { kind: "set" } {
    return { kind: "set", collection: this.name(), at: 0, patch: this.assignments(), ...this.#pick() };
  }

  del(): Statement & { kind: "del" } {
    return { kind: "del", collection: this.name(), at: 0, ...this.#pick() };
  }

  put(): Statement & { kind: "put" } {
    const ifAbsent = this.#random.chance(0.4);
    return {
      kind: "put",
      insert: this.#random.chance(0.3),
      collection: this.name(),
      at: 0,
      documents: this.#random.chance(0.1) ? this.param() : this.#some(4, () => ({ entries: this.assignments() })),
      ifAbsent,
      elseSet: ifAbsent ? this.#maybe(() => this.assignments()) : null,
      require: this.#maybe(() => this.#random.below(50)),
    };
  }

  type(): FieldType {
    const random = this.#random;
    if (random.chance(0.2)) {
      let type: FieldType = { kind: random.pick(["bool", "int", "text", "geo"] as const) };
      for (let lists = random.below(3); lists >= 0; lists--) type = { kind: "list", of: type };
      return type;
    }
    return { kind: random.pick(["bool", "int", "float", "text", "bytes", "timestamp", "json", "geo"] as const) };
  }

  index(): IndexClause {
    const random = this.#random;
    if (random.chance(0.3)) {
      const [ttlText, ttlMs] = random.pick([
        ["7d", 604_800_000],
        ["250ms", 250],
        ["30s", 30_000],
      ] as const);
      return { kind: "ttl", ttlText, ttlMs };
    }
    return { kind: random.pick(["hash", "unique", "sorted", "geo"] as const), ttlText: "", ttlMs: 0 };
  }

  field(): FieldClause {
    const index = this.#maybe(() => this.index());
    return { name: this.name(), type: this.type(), required: this.#random.chance(0.3), index, at: 0 };
  }

  declaration(): Statement {
    const random = this.#random;
    const collection = this.name();
    switch (random.below(6)) {
      case 0:
        return {
          kind: "create",
          collection,
          at: 0,
          ifNotExists: random.chance(0.3),
          fields: [this.field(), ...this.#some(3, () => this.field())],
        };
      case 1:
        return { kind: "drop", collection, at: 0, ifExists: random.chance(0.3) };
      case 2: {
        const keys = this.#some(2, () => random.pick(KEYS));
        const place = { collection, at: 0, field: this.name(), keys, index: this.index() };
        return { kind: "createIndex", ifNotExists: random.chance(0.3), ...place };
      }
      case 3:
        return random.chance(0.5)
          ? { kind: "describe", collection, at: 0 }
          : { kind: "compact", collection: this.#maybe(() => collection) };
      case 4:
        return { kind: "collections" };
      default:
        return { kind: "alter", collection, at: 0, action: this.#action() };
    }
  }

  #action(): (Statement & { kind: "alter" })["action"] {
    const field = this.name();
    switch (this.#random.below(4)) {
      case 0:
        return { kind: "add", field: this.field() };
      case 1:
        return { kind: "drop", field };
      case 2:
        return { kind: "rename", field, to: this.name() };
      default: {
        const ttl: IndexClause = { kind: "ttl", ttlText: "1h", ttlMs: 3_600_000 };
        const sorted: IndexClause = { kind: "sorted", ttlText: "", ttlMs: 0 };
        return { kind: "index", field, index: this.#random.chance(0.5) ? ttl : sorted };
      }
    }
  }

  /** A read, a write, or one of them explained. */
  work(): Statement {
    switch (this.#random.below(8)) {
      case 0:
      case 1:
        return this.get(3);
      case 2:
      case 3:
        return this.set();
      case 4:
        return this.del();
      case 5: {
        const of = this.#random.pick([() => this.get(2), () => this.set(), () => this.del()])();
        return { kind: "explain", of };
      }
      default:
        return this.put();
    }
  }

  statement(): Statement {
    return this.#random.chance(0.25) ? this.declaration() : this.work();
  }
}
