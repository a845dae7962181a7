/**
 * The language's arithmetic. Ints are signed 64-bit and exact: a result that would not fit is refused, never wrapped or
 * rounded. A float that is no longer finite is refused. Null with anything is null.
 */

import { INT_MAX, INT_MIN, TIME_MAX_MS, TIME_MIN_MS } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import { Float, intOf, kindWords, Time, type Value } from "./value.ts";

type Int = number | bigint;

function isInt(value: Value): value is Int {
  return typeof value === "number" || typeof value === "bigint";
}

function isNumber(value: Value): value is Int | Float {
  return typeof value === "number" || typeof value === "bigint" || value instanceof Float;
}

function doubleOf(value: Int | Float): number {
  return value instanceof Float ? value.n : Number(value);
}

function mismatch(verb: string, first: Value, joint: string, second: Value): never {
  throw new Refusal("bad_value", `cannot ${verb} ${kindWords(first)} ${joint} ${kindWords(second)}`);
}

function int(n: bigint): Int {
  if (n < INT_MIN || n > INT_MAX) throw new Refusal("overflow", "the result is an int past 64 bits");
  return intOf(n);
}

function float(n: number): Float {
  if (!Number.isFinite(n)) throw new Refusal("overflow", "the result is a float too large for a double");
  return new Float(n);
}

function time(ms: number | bigint): Time {
  if (ms < TIME_MIN_MS || ms > TIME_MAX_MS) {
    throw new Refusal("overflow", "the result is a timestamp outside the years 0000 to 9999");
  }
  return new Time(Number(ms));
}

/** A sum or difference of an ms and an int; a double is exact enough to tell whether it lies in range. */
function shifted(ms: number, by: Int, sign: 1 | -1): Time {
  return time(typeof by === "number" ? ms + sign * by : BigInt(ms) + (sign === 1 ? by : -by));
}

export function add(a: Value, b: Value): Value {
  if (typeof a === "number" && typeof b === "number") {
    const sum = a + b;
    return Number.isSafeInteger(sum) ? sum : int(BigInt(a) + BigInt(b));
  }
  if (a === null || b === null) return null;
  if (isNumber(a) && isNumber(b)) {
    return isInt(a) && isInt(b) ? int(BigInt(a) + BigInt(b)) : float(doubleOf(a) + doubleOf(b));
  }
  if (a instanceof Time && isInt(b)) return shifted(a.ms, b, 1);
  if (isInt(a) && b instanceof Time) return shifted(b.ms, a, 1);
  if (typeof a === "string" && typeof b === "string") return a + b;
  mismatch("add", a, "and", b);
}

export function subtract(a: Value, b: Value): Value {
  if (typeof a === "number" && typeof b === "number") {
    const difference = a - b;
    return Number.isSafeInteger(difference) ? difference : int(BigInt(a) - BigInt(b));
  }
  if (a === null || b === null) return null;
  if (isNumber(a) && isNumber(b)) {
    return isInt(a) && isInt(b) ? int(BigInt(a) - BigInt(b)) : float(doubleOf(a) - doubleOf(b));
  }
  if (a instanceof Time) {
    if (isInt(b)) return shifted(a.ms, b, -1);
    if (b instanceof Time) return a.ms - b.ms;
  }
  mismatch("subtract", b, "from", a);
}

export function multiply(a: Value, b: Value): Value {
  if (typeof a === "number" && typeof b === "number") {
    const product = a * b;
    // A product rounded to a double is safe only when it was exact. `+ 0` takes the sign off minus zero.
    return Number.isSafeInteger(product) ? product + 0 : int(BigInt(a) * BigInt(b));
  }
  if (a === null || b === null) return null;
  if (isNumber(a) && isNumber(b)) {
    return isInt(a) && isInt(b) ? int(BigInt(a) * BigInt(b)) : float(doubleOf(a) * doubleOf(b));
  }
  mismatch("multiply", a, "and", b);
}

/** Ints divide to an int, toward zero. */
export function divide(a: Value, b: Value): Value {
  if (a === null || b === null) return null;
  if (!isNumber(a) || !isNumber(b)) mismatch("divide", a, "by", b);
  if (doubleOf(b) === 0) throw new Refusal("division_by_zero", "division by zero");
  if (typeof a === "number" && typeof b === "number") return (a - (a % b)) / b + 0;
  return isInt(a) && isInt(b) ? int(BigInt(a) / BigInt(b)) : float(doubleOf(a) / doubleOf(b));
}

export function negate(a: Value): Value {
  if (a === null) return null;
  if (typeof a === "number") return 0 - a;
  if (typeof a === "bigint") return int(-a);
  if (a instanceof Float) return new Float(-a.n);
  throw new Refusal("bad_value", `cannot negate ${kindWords(a)}`);
}
