/**
 * Plans kept by statement text. Texts that differ only in their literals share a plan: the literals are lifted out by one
 * quick pass and bound as parameters, so that a client that writes its values into the text costs no parse either.
 *
 * A plan holds on to tables and indexes, so each is good for one version of the schema; the parsed statement outlives it.
 */

import { ownText } from "../base/bytes.ts";
import { CACHED_PLANS, CACHED_TEXT_LENGTH } from "../base/limits.ts";
import { attempt } from "../base/refusal.ts";
import type { Statement } from "../lang/ast.ts";
import { type Lifted, lift } from "../lang/lift.ts";
import { parseLifted, parseStatement } from "../lang/parse.ts";
import type { Store } from "../store/store.ts";
import type { Value } from "../value/value.ts";
import type { Plan } from "./plan.ts";
import type { Rules } from "./rules.ts";
import { planStatement } from "./statement.ts";

/** A statement as it stands in a text: its shape, which texts may share, and this text's literals. */
export interface Parsed {
  readonly shape: Shape;
  readonly literals: readonly Value[];
}

export class Shape {
  readonly statement: Statement;
  #plan: Plan | null = null;
  #version = -1;
  /** Plans under rules: as many as there are kinds of token that sent this text. */
  #bound: Map<Rules, Plan> | null = null;

  constructor(statement: Statement) {
    this.statement = statement;
  }

  /** The plan over the schema as it is, under a token's rules. Throws Refusal where the statement does not fit. */
  plan(store: Store, rules: Rules | null): Plan {
    if (this.#version !== store.schemaVersion) {
      this.#plan = null;
      this.#bound = null;
      this.#version = store.schemaVersion;
    }
    if (rules === null) {
      this.#plan ??= planStatement(store, this.statement, null);
      return this.#plan;
    }
    this.#bound ??= new Map();
    let plan = this.#bound.get(rules);
    if (plan === undefined) {
      plan = planStatement(store, this.statement, rules);
      keep(this.#bound, rules, plan);
    }
    return plan;
  }
}

const NO_LITERALS: readonly Value[] = [];

/** Texts remembered as just seen; a power of two. */
const LATEST_TEXTS = 256;

export class StatementCache {
  readonly #byText = new Map<string, Parsed>();
  readonly #byKey = new Map<string, Shape>();
  /** Hashes of the latest texts with literals: one that comes again is kept whole, one of its own kind never is. */
  readonly #latest = new Float64Array(LATEST_TEXTS);

  /** Throws Refusal `syntax`. */
  parse(text: string): Parsed {
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    if (text.length > CACHED_TEXT_LENGTH) return { shape: new Shape(parseStatement(text)), literals: NO_LITERALS };
    const lifted = lift(text);
    if (lifted !== null && lifted.literals.length > 0) {
      const shape = this.#byKey.get(lifted.key);
      if (shape !== undefined && !this.#isRepeated(text)) return { shape, literals: lifted.literals };
    }
    return this.#kept(ownText(text));
  }

  /** @param text in memory of its own: what is kept of a request must not keep its body */
  #kept(text: string): Parsed {
    const lifted = lift(text);
    let parsed: Parsed | undefined;
    if (lifted !== null && lifted.literals.length > 0) {
      const known = this.#byKey.get(lifted.key);
      const shape = known ?? this.#liftedShape(lifted);
      if (shape !== undefined) {
        parsed = { shape, literals: lifted.literals };
        if (known === undefined) return parsed;
      }
    }
    // A text whose lifted form is refused is read as it stands: refused in its own words and places, or good after all.
    parsed ??= { shape: new Shape(parseStatement(text)), literals: NO_LITERALS };
    keep(this.#byText, text, parsed);
    return parsed;
  }

  /** A claim is sent again and again as it is; a put with its values written out is not, and would push the claim out. */
  #isRepeated(text: string): boolean {
    const hash = Bun.hash.xxHash32(text);
    const place = hash & (LATEST_TEXTS - 1);
    if (this.#latest[place] === hash) return true;
    this.#latest[place] = hash;
    return false;
  }

  #liftedShape(lifted: Lifted): Shape | undefined {
    const shape = attempt(() => new Shape(parseLifted(lifted)));
    if (shape !== undefined) keep(this.#byKey, lifted.key, shape);
    return shape;
  }
}

/** The oldest goes when there are too many. */
function keep<K, V>(map: Map<K, V>, key: K, value: V): void {
  if (map.size >= CACHED_PLANS) {
    const [oldest] = map.keys();
    if (oldest !== undefined) map.delete(oldest);
  }
  map.set(key, value);
}
