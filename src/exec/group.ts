/** Reads that answer aggregates: of the whole set, or of groups. */

import { Refusal } from "../base/refusal.ts";
import type { Expr, GetStatement, SelectItem } from "../lang/ast.ts";
import { printExpr } from "../lang/print.ts";
import { partsOf, someNode } from "../lang/walk.ts";
import type { Env } from "../plan/env.ts";
import {
  type AggregateSpec,
  type Compiled,
  type Counters,
  ExpressionCompiler,
  type InnerGet,
  isAggregate,
  type Test,
  truth,
} from "../plan/expression.ts";
import type { Pick } from "../plan/pick.ts";
import type { Table } from "../store/table.ts";
import { compareValues, identity } from "../value/order.ts";
import type { Row, Value } from "../value/value.ts";
import { type Accumulator, accumulatorOf } from "./aggregate.ts";
import { type Column, columnOf, nameOf, RowWriter } from "./render.ts";

type Item = SelectItem & { readonly kind: "item" };

interface Group {
  readonly first: Row;
  readonly keys: readonly Value[];
  readonly accumulators: readonly Accumulator[];
  aggregates: Value[];
}

const NO_ROW: Row = [];

export class Grouping {
  readonly columns: readonly Column[];
  readonly writer: RowWriter;
  readonly #keys: readonly Compiled[];
  readonly #specs: readonly AggregateSpec[];
  readonly #having: Test | null;
  readonly #order: readonly { readonly compiled: Compiled; readonly desc: boolean }[];

  constructor(table: Table, get: GetStatement, counters: Counters, planInner: (get: GetStatement) => InnerGet) {
    const items = get.select.filter((item): item is Item => item.kind === "item");
    if (items.length !== get.select.length) {
      throw new Refusal("bad_clause", "`*` does not go with aggregates or group: name the columns");
    }
    const plain = { table, row: true, incoming: false, aggregates: false, columns: null };
    const rowCompiler = new ExpressionCompiler(plain, counters, planInner);
    const named = new Map(items.flatMap((item) => (item.as === null ? [] : [[item.as, item] as const])));
    // A group key is an expression over the rows, or the `as` name of an item where no field is called that.
    const keyExprs = get.group.map((key) => {
      const alias = key.kind === "path" && key.keys.length === 0 ? named.get(key.field) : undefined;
      const isField = key.kind === "path" && (key.field === "id" || table.slotOf(key.field) !== undefined);
      return alias !== undefined && !isField ? alias.expr : key;
    });
    this.#keys = keyExprs.map((key) => rowCompiler.compile(key));
    const keyTexts = new Set(keyExprs.map(printExpr));
    const compiler = new ExpressionCompiler({ ...plain, aggregates: true }, counters, planInner);
    const columns = new Map<string, Compiled>();
    this.columns = items.map((item) => {
      const name = nameOf(item);
      if (columns.has(name)) {
        throw new Refusal("bad_clause", `two columns are called \`${name}\`: give one another name by \`as\``);
      }
      checkKeys(item.expr, keyTexts, null);
      const compiled = compiler.compile(item.expr);
      columns.set(name, compiled);
      return columnOf(name, compiled);
    });
    this.writer = new RowWriter(this.columns);
    const names = new Set(columns.keys());
    // One list of aggregates serves the list, having and order.
    const specs = compiler.aggregates;
    const shared = new ExpressionCompiler({ ...plain, aggregates: true, columns }, counters, planInner, specs);
    if (get.having === null) this.#having = null;
    else {
      checkKeys(get.having, keyTexts, names);
      this.#having = truth(shared.compile(get.having), get.having);
    }
    this.#order = get.order.map((key) => {
      checkKeys(key.expr, keyTexts, names);
      return { compiled: shared.compile(key.expr), desc: key.desc };
    });
    this.#specs = specs;
  }

  /** Groups in the order of their keys, or of `order`; those `having` lets through. */
  groups(pick: Pick, whole: boolean, env: Env): Group[] {
    const outer = env.aggregates;
    const groups = new Map<string, Group>();
    const rows = pick.run(env).rows;
    for (const row of rows) {
      const keys = this.#keys.map((key) => key.eval(row, env));
      const text = keys.map(keyText).join("");
      let group = groups.get(text);
      if (group === undefined) {
        group = this.#open(row, keys);
        groups.set(text, group);
      }
      for (const accumulator of group.accumulators) accumulator.take(row, env);
    }
    if (whole && groups.size === 0) groups.set("", this.#open(NO_ROW, []));
    const all = [...groups.values()];
    for (const group of all) group.aggregates = group.accumulators.map((accumulator) => accumulator.result());
    const kept = this.#having === null ? all : all.filter((group) => this.#holds(group, env));
    if (this.#order.length === 0) {
      kept.sort((a, b) => compareKeys(a.keys, b.keys));
    } else {
      const keyed = kept.map((group) => {
        env.aggregates = group.aggregates;
        return { group, by: this.#order.map((key) => key.compiled.eval(group.first, env)) };
      });
      keyed.sort((a, b) => {
        for (const [at, key] of this.#order.entries()) {
          const order = compareValues(a.by[at] as Value, b.by[at] as Value);
          if (order !== 0) return key.desc ? -order : order;
        }
        return compareKeys(a.group.keys, b.group.keys);
      });
      for (const [at, entry] of keyed.entries()) kept[at] = entry.group;
    }
    env.aggregates = outer;
    return kept;
  }

  json(groups: readonly Group[], env: Env): string {
    const outer = env.aggregates;
    const rows = groups.map((group) => {
      env.aggregates = group.aggregates;
      return this.writer.row(group.first, env);
    });
    env.aggregates = outer;
    return `[${rows.join(",")}]`;
  }

  /** The one column's value of each group. */
  values(groups: readonly Group[], env: Env): Value[] {
    const outer = env.aggregates;
    const [column] = this.columns;
    const values = groups.map((group) => {
      env.aggregates = group.aggregates;
      return column?.value(group.first, env) ?? null;
    });
    env.aggregates = outer;
    return values;
  }

  #open(first: Row, keys: readonly Value[]): Group {
    return { first, keys, accumulators: this.#specs.map(accumulatorOf), aggregates: [] };
  }

  #holds(group: Group, env: Env): boolean {
    env.aggregates = group.aggregates;
    return this.#having?.(group.first, env) ?? true;
  }
}

function compareKeys(a: readonly Value[], b: readonly Value[]): number {
  for (let at = 0; at < a.length; at++) {
    const order = compareValues(a[at] as Value, b[at] as Value);
    if (order !== 0) return order;
  }
  return 0;
}

function keyText(value: Value): string {
  const key = identity(value);
  const text = `${typeof key}:${String(Object.is(key, -0) ? 0 : key)}`;
  return `${text.length}|${text}`;
}

/** Whether any aggregate is asked for. */
export function hasAggregate(root: Expr): boolean {
  return someNode(root, isAggregate);
}

/** Outside aggregates, only group keys (and, where given, columns of the list) can be read of a group. */
function checkKeys(root: Expr, keys: ReadonlySet<string>, columns: ReadonlySet<string> | null): void {
  const pending: Expr[] = [root];
  for (let expr = pending.pop(); expr !== undefined; expr = pending.pop()) {
    if (isAggregate(expr)) continue;
    const text = printExpr(expr);
    if (keys.has(text)) continue;
    if (expr.kind === "path") {
      if (columns?.has([expr.field, ...expr.keys].join("."))) continue;
      throw new Refusal("bad_clause", `\`${text}\` is neither a group key nor inside an aggregate`);
    }
    for (const part of partsOf(expr)) pending.push(part);
  }
}
