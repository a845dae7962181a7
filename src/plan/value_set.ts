/** The values of an `in`: membership by the same equality as `=`, in one look-up however long the list. */

import { comparable, identity } from "../value/order.ts";
import { parseTime } from "../value/time.ts";
import { Point, Time, type Value } from "../value/value.ts";

export class ValueSet {
  readonly values: readonly Value[];
  readonly #identities = new Set<ReturnType<typeof identity>>();
  /** Epoch ms of the members that are times, and of those that a time may equal; built when first needed. */
  #times: Set<number> | undefined;
  #timely: Set<number> | undefined;
  readonly #bytes: readonly Value[];

  constructor(values: readonly Value[]) {
    this.values = values;
    for (const value of values) this.#identities.add(identity(value));
    this.#bytes = values.filter((value) => value instanceof Uint8Array || typeof value === "string");
    if (!this.#bytes.some((value) => value instanceof Uint8Array)) this.#bytes = [];
  }

  has(value: Value): boolean {
    if (this.#identities.has(identity(value))) return true;
    if (value === null) return false;
    if (value instanceof Time) {
      this.#timely ??= new Set(this.values.map(msOf).filter((ms) => ms !== undefined));
      return this.#timely.has(value.ms);
    }
    const ms = msOf(value);
    if (ms !== undefined) {
      this.#times ??= new Set(this.values.flatMap((member) => (member instanceof Time ? [member.ms] : [])));
      if (this.#times.has(ms)) return true;
    }
    if (value instanceof Uint8Array || value instanceof Point) {
      return this.values.some((member) => comparable(value, member) === 0);
    }
    return typeof value === "string" && this.#bytes.some((member) => equal(member, value));
  }
}

/** The time an int or a text is, when it stands against a timestamp. */
function msOf(value: Value): number | undefined {
  if (value instanceof Time) return value.ms;
  if (typeof value === "number") return value;
  if (typeof value === "string") return parseTime(value);
  return undefined;
}

/** The language's `=`: two nulls are equal; a time meets text and ints, bytes meet text. */
export function equal(a: Value, b: Value): boolean {
  if (a === b) return true;
  if (a === null || b === null) return false;
  return comparable(a, b) === 0;
}
