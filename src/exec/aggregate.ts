/** Aggregates over the rows of a group: one accumulator each, nulls passed over by all but `count(*)`. */

import { DISTINCT_VALUES } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import type { Env } from "../plan/env.ts";
import { type AggregateSpec, listOf } from "../plan/expression.ts";
import { add } from "../value/arithmetic.ts";
import { comparable, compareValues, identity } from "../value/order.ts";
import { Float, intOf, Json, kindWords, type Row, type Value } from "../value/value.ts";

export interface Accumulator {
  take(row: Row, env: Env): void;
  result(): Value;
}

export function accumulatorOf(spec: AggregateSpec): Accumulator {
  switch (spec.name) {
    case "count":
      return spec.distinct ? new DistinctCount(spec) : new RowCount();
    case "sum":
      return new Sum(spec, false);
    case "avg":
      return new Sum(spec, true);
    case "min":
      return new Extreme(spec, -1);
    case "max":
      return new Extreme(spec, 1);
    case "first":
      return new Edge(spec, -1);
    default:
      return new Edge(spec, 1);
  }
}

class RowCount implements Accumulator {
  #count = 0;
  take(): void {
    this.#count++;
  }
  result(): Value {
    return this.#count;
  }
}

class DistinctCount implements Accumulator {
  readonly #spec: AggregateSpec;
  readonly #seen = new Set<ReturnType<typeof identity>>();
  constructor(spec: AggregateSpec) {
    this.#spec = spec;
  }
  take(row: Row, env: Env): void {
    const value = argumentOf(this.#spec, row, env);
    if (value === null) return;
    this.#seen.add(identity(value));
    if (this.#seen.size > DISTINCT_VALUES) {
      throw new Refusal("limit_passed", `count(distinct ...) met more than ${DISTINCT_VALUES} values`);
    }
  }
  result(): Value {
    return this.#seen.size;
  }
}

/** Ints add up exactly however long the way; a float among them makes a float of the sum. */
class Sum implements Accumulator {
  readonly #spec: AggregateSpec;
  readonly #average: boolean;
  #ints = 0;
  #wide = 0n;
  #floats = 0;
  #anyFloat = false;
  #count = 0;
  constructor(spec: AggregateSpec, average: boolean) {
    this.#spec = spec;
    this.#average = average;
  }
  take(row: Row, env: Env): void {
    const value = argumentOf(this.#spec, row, env);
    if (value === null) return;
    this.#count++;
    if (typeof value === "number") {
      const sum = this.#ints + value;
      if (Number.isSafeInteger(sum)) this.#ints = sum;
      else {
        this.#wide += BigInt(this.#ints) + BigInt(value);
        this.#ints = 0;
      }
    } else if (typeof value === "bigint") this.#wide += value;
    else if (value instanceof Float) {
      this.#floats += value.n;
      this.#anyFloat = true;
    } else
      throw new Refusal(
        "bad_value",
        `${this.#spec.name}() adds numbers, and met ${kindWords(value)} in row ${String(row[0])}`,
      );
  }
  result(): Value {
    if (this.#count === 0) return null;
    const whole = this.#wide + BigInt(this.#ints);
    if (this.#average || this.#anyFloat) {
      const sum = Number(whole) + this.#floats;
      const result = this.#average ? sum / this.#count : sum;
      if (!Number.isFinite(result)) throw new Refusal("overflow", `${this.#spec.name}() is past what a float holds`);
      return new Float(result);
    }
    // Through the language's own addition, which refuses what 64 bits do not hold.
    return add(0, checkedInt(whole));
  }
}

function checkedInt(whole: bigint): Value {
  if (BigInt.asIntN(64, whole) !== whole) throw new Refusal("overflow", "sum() is past what 64 bits hold");
  return intOf(whole);
}

class Extreme implements Accumulator {
  readonly #spec: AggregateSpec;
  readonly #sign: number;
  #best: Value = null;
  constructor(spec: AggregateSpec, sign: number) {
    this.#spec = spec;
    this.#sign = sign;
  }
  take(row: Row, env: Env): void {
    const value = argumentOf(this.#spec, row, env);
    if (value === null) return;
    if (value instanceof Json || listOf(value) !== undefined || value instanceof Uint8Array) {
      throw new Refusal("bad_value", `${this.#spec.name}() takes values with an order, and met ${kindWords(value)}`);
    }
    if (this.#best === null || order(value, this.#best) * this.#sign > 0) this.#best = value;
  }
  result(): Value {
    return this.#best;
  }
}

/** The value at the least or greatest key; ties go to the lowest or highest id. Without a key, by id alone. */
class Edge implements Accumulator {
  readonly #spec: AggregateSpec;
  readonly #sign: number;
  #value: Value = null;
  #key: Value = null;
  #id = 0;
  constructor(spec: AggregateSpec, sign: number) {
    this.#spec = spec;
    this.#sign = sign;
  }
  take(row: Row, env: Env): void {
    const value = argumentOf(this.#spec, row, env);
    if (value === null) return;
    const by = this.#spec.by;
    const key = by === null ? null : by.eval(row, env);
    if (by !== null && key === null) return;
    const id = row[0] as number;
    const ahead = by === null ? 0 : order(key, this.#key) * this.#sign;
    if (this.#value === null || ahead > 0 || (ahead === 0 && (id - this.#id) * this.#sign > 0)) {
      this.#value = value;
      this.#key = key;
      this.#id = id;
    }
  }
  result(): Value {
    return this.#value;
  }
}

function order(a: Value, b: Value): number {
  return comparable(a, b) ?? compareValues(a, b);
}

function argumentOf(spec: AggregateSpec, row: Row, env: Env): Value {
  return spec.arg === null ? null : spec.arg.eval(row, env);
}
