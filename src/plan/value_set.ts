/** The values of an `in`: membership by the same equality as `=`, in one look-up however long the list. */

import { comparable, identity } from "../value/order.ts";
import { parseTime } from "../value/time.ts";
import { Float, Point, Time, type Value } from "../value/value.ts";

export class ValueSet {
  readonly values: readonly Value[];
  readonly #identities = new Set<ReturnType<typeof identity>>();
  /** Members that equal values of other kinds: bytes and points, one by one; times, by their ms. */
  readonly #bytesAndPoints: readonly Value[];
  readonly #times: ReadonlySet<number>;
  /** Epoch ms of the members that a time may equal; built when a time first asks. */
  #timely: Set<number> | undefined;

  constructor(values: readonly Value[]) {
    this.values = values;
    for (const value of values) this.#identities.add(identity(value));
    this.#bytesAndPoints = values.filter((value) => value instanceof Uint8Array || value instanceof Point);
    this.#times = new Set(values.flatMap((value) => (value instanceof Time ? [value.ms] : [])));
  }

  has(value: Value): boolean {
    if (this.#identities.has(identity(value))) return true;
    if (value === null) return false;
    if (value instanceof Time) {
      this.#timely ??= new Set(this.values.map(msOf).filter((ms) => ms !== undefined));
      return this.#timely.has(value.ms);
    }
    if (value instanceof Uint8Array || value instanceof Point) {
      return this.values.some((member) => comparable(value, member) === 0);
    }
    if (this.#times.size > 0) {
      const ms = msOf(value);
      if (ms !== undefined && this.#times.has(ms)) return true;
    }
    return this.#bytesAndPoints.some((member) => comparable(value, member) === 0);
  }
}

/** The time a number or a text is, when it stands against a timestamp. */
function msOf(value: Value): number | undefined {
  if (value instanceof Time) return value.ms;
  if (typeof value === "number") return value;
  if (value instanceof Float) return value.n;
  if (typeof value === "string") return parseTime(value);
  return undefined;
}

/** The language's `=`: two nulls are equal; a time meets text and ints, bytes meet text. */
export function equal(a: Value, b: Value): boolean {
  if (a === b) return true;
  if (a === null || b === null) return false;
  return comparable(a, b) === 0;
}
