/** The order of an answer: how two rows compare, and which index, if any, has them in that order already. */

import type { OrderKey } from "../lang/ast.ts";
import type { OrderedIndex } from "../store/ordered_index.ts";
import type { Table } from "../store/table.ts";
import { compareValues } from "../value/order.ts";
import { compareCells } from "../value/types.ts";
import type { Cell, Point, Row, Value } from "../value/value.ts";
import { orderShape } from "./bound_text.ts";
import type { Env } from "./env.ts";
import type { Compiled, ExpressionCompiler } from "./expression.ts";
import { distanceFrom } from "./filter.ts";
import { Firsts, INSERTED_ITEMS } from "./firsts.ts";

export interface OrderPart {
  readonly compiled: Compiled;
  readonly desc: boolean;
  /** For a plain field: its cells compare with no value built. */
  readonly cells: ((a: Cell, b: Cell) => number) | null;
}

/** Where rows lie in order: by id, by an index, by distance from a point; or nowhere. */
export type Walk =
  | { readonly kind: "id"; readonly desc: boolean }
  | { readonly kind: "index"; readonly index: OrderedIndex; readonly desc: boolean }
  | {
      readonly kind: "near";
      readonly field: string;
      readonly slot: number;
      readonly point: (env: Env) => Point | null;
    };

interface Keyed {
  readonly row: Row;
  readonly keys: readonly Value[];
}

export class Order {
  readonly parts: readonly OrderPart[];
  readonly walk: Walk | null;
  /** One key, the distance from a constant point, nearest first: whether the field has an index or not. */
  readonly nearness: { readonly slot: number; readonly point: (env: Env) => Point | null } | null;
  /** The order with its values left out: orders of one shape rank rows on one scale. */
  readonly shape: string;

  constructor(table: Table, keys: readonly OrderKey[], compiler: ExpressionCompiler) {
    this.parts = keys.map((key) => {
      const compiled = compiler.compile(key.expr);
      const field = compiled.field;
      const plain = field !== null && field.keys.length === 0 && field.type.kind !== "json";
      return { compiled, desc: key.desc, cells: plain ? compareCells(field.type) : null };
    });
    this.walk = walkOf(table, keys, this.parts, compiler);
    this.shape = orderShape(keys);
    const [key] = keys;
    this.nearness =
      keys.length === 1 && key !== undefined && !key.desc && key.expr.kind === "call" && key.expr.name === "distance"
        ? (distanceFrom(table, key.expr.args, compiler, false) ?? null)
        : null;
  }

  /**
   * Rows in order, at most `most` of them. Equal rows come by ascending id, whatever the directions.
   * Expression keys are worked out once a row.
   */
  sorted(rows: readonly Row[], most: number, env: Env): Row[] {
    if (most < rows.length && most > 0 && most <= INSERTED_ITEMS) {
      const page = this.page(most, env);
      for (const row of rows) page.add(row);
      return page.rows();
    }
    const plain = this.#plainOrder();
    const all =
      plain === undefined
        ? rows
            .map((row): Keyed => ({ row, keys: this.keysOf(row, env) }))
            .sort((a, b) => this.#compareKeyed(a, b))
            .map(({ row }) => row)
        : rows.slice().sort(plain);
    return most < all.length ? all.slice(0, most) : all;
  }

  /** Takes rows one by one and keeps the first of them, 1 to INSERTED_ITEMS. */
  page(most: number, env: Env): { add(row: Row): void; rows(): Row[] } {
    const plain = this.#plainOrder();
    if (plain !== undefined) {
      const firsts = new Firsts(most, plain);
      return { add: (row) => firsts.add(row), rows: () => firsts.items };
    }
    const firsts = new Firsts<Keyed>(most, (a, b) => this.#compareKeyed(a, b));
    return {
      add: (row) => firsts.add({ row, keys: this.keysOf(row, env) }),
      rows: () => firsts.items.map(({ row }) => row),
    };
  }

  /** How rows compare by their cells alone; undefined where keys have to be worked out. */
  #plainOrder(): ((a: Row, b: Row) => number) | undefined {
    const [only, more] = this.parts;
    if (only === undefined) return (a, b) => (a[0] as number) - (b[0] as number);
    const { cells, desc } = only;
    const field = only.compiled.field;
    if (more !== undefined || cells === null || field === null) return undefined;
    const { slot } = field;
    const sign = desc ? -1 : 1;
    return (a, b) => sign * cells(a[slot] as Cell, b[slot] as Cell) || (a[0] as number) - (b[0] as number);
  }

  #compareKeyed(a: Keyed, b: Keyed): number {
    return this.compareKeys(a.keys, b.keys) || (a.row[0] as number) - (b.row[0] as number);
  }

  /** Whether `a` comes before `b`: less than 0. Equal rows come by id. */
  compareRows(a: Row, b: Row, env: Env): number {
    return this.compareKeys(this.keysOf(a, env), this.keysOf(b, env)) || (a[0] as number) - (b[0] as number);
  }

  keysOf(row: Row, env: Env): Value[] {
    return this.parts.map((part) => part.compiled.eval(row, env));
  }

  compareKeys(a: readonly Value[], b: readonly Value[]): number {
    const { parts } = this;
    for (let at = 0; at < parts.length; at++) {
      const order = compareValues(a[at] as Value, b[at] as Value);
      if (order !== 0) return (parts[at] as OrderPart).desc ? -order : order;
    }
    return 0;
  }
}

function walkOf(
  table: Table,
  keys: readonly OrderKey[],
  parts: readonly OrderPart[],
  compiler: ExpressionCompiler,
): Walk | null {
  const [key, ...rest] = keys;
  const [part, ...others] = parts;
  if (key === undefined || part === undefined) return { kind: "id", desc: false };
  // A last `id asc` says what the tie rule says anyway; more keys than that are a sort.
  const idle = others.length === 1 && others[0]?.compiled.field?.slot === 0 && !others[0].desc;
  if (rest.length > 0 && !idle) return null;
  const field = part.compiled.field;
  if (field !== null) {
    if (field.slot === 0) return { kind: "id", desc: part.desc };
    const index = table.index(field.name, field.keys);
    if (index === undefined || (index.def.kind !== "sorted" && index.def.kind !== "ttl")) return null;
    return { kind: "index", index, desc: part.desc };
  }
  if (key.expr.kind === "call" && key.expr.name === "distance" && !key.desc) {
    const found = distanceFrom(table, key.expr.args, compiler);
    if (found !== undefined) return { kind: "near", ...found };
  }
  return null;
}
