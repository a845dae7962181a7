/**
 * All that one run of a statement may read besides rows: its parameters, its one `now()`, a token's claims. Constants of
 * the statement (`now() + 30000`, `$1`) are worked out at most once a run and kept in `memo`.
 */

import { Refusal } from "../base/refusal.ts";
import { LIFTED_BASE } from "../lang/lifted.ts";
import type { Row, Value } from "../value/value.ts";
import type { ValueSet } from "./value_set.ts";

export type Claims = ReadonlyMap<string, Value>;

const NO_CLAIMS: Claims = new Map();
const NO_ROW: Row = [];

export class Env {
  /** Epoch ms: what `now()` is in this statement, for every row of it. */
  readonly now: number;
  readonly params: readonly Value[];
  readonly literals: readonly Value[];
  readonly claims: Claims;
  /** Constants of the statement, by their number in the plan; undefined until asked for. */
  readonly memo: (Value | undefined)[] = [];
  /** Constants turned into keys of a field, by number. */
  readonly keys: unknown[] = [];
  /** The value lists of `in (get ...)` and of constant `in [...]`, by number. */
  readonly sets: (ValueSet | undefined)[] = [];
  /** What `new.f` reads: an upsert's document, or the row a transition would leave. */
  incoming: Row = NO_ROW;
  /** Results of the aggregates of the group at hand. */
  aggregates: readonly Value[] = [];
  /** Rows tested by filters in this run, for `explain`. */
  tested = 0;

  constructor(now: number, params: readonly Value[], literals: readonly Value[], claims: Claims | null) {
    this.now = now;
    this.params = params;
    this.literals = literals;
    this.claims = claims ?? NO_CLAIMS;
  }

  param(index: number): Value {
    const value = index < LIFTED_BASE ? this.params[index] : this.literals[index - LIFTED_BASE];
    if (value === undefined) {
      throw new Refusal("bad_parameter", `parameter $${index + 1} was not sent (${this.params.length} were)`);
    }
    return value;
  }
}
