/** Tokens: a bearer verified, its claims read, and the rules that concern it found. Verified ones are remembered. */

import { createHash } from "node:crypto";
import { compactVerify, decodeProtectedHeader } from "jose";
import { CLAIM_VALUES, RULE_SETS, VERIFIED_TOKENS } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import { listValues, parseMembers, valueToJson } from "../value/json.ts";
import { Float, Json, type Value } from "../value/value.ts";
import type { Keys, VerifyingKey } from "./keys.ts";
import type { Policy, Rule } from "./policy.ts";
import { RuleSet } from "./rule_set.ts";

/** A token held to rules. */
export interface ScopedToken {
  readonly rules: RuleSet;
  readonly claims: ReadonlyMap<string, Value>;
  /** `sub`; empty when it has none. */
  readonly subject: string;
  /** Digest of its rules and of the claims they read: two tokens of equal rights may be told the same. */
  readonly rights: string;
  readonly expiresAtMs: number;
  readonly notBeforeMs: number;
}

export interface TokenOptions {
  readonly requireExp: boolean;
  /** Seconds an `exp` may lie ahead at the most; null: any. */
  readonly maxAgeSeconds: number | null;
}

const utf8 = new TextDecoder();

export class Tokens {
  readonly #keys: Keys;
  readonly #policy: Policy;
  readonly #options: TokenOptions;
  readonly #verified = new Map<string, ScopedToken>();
  readonly #sets = new Map<string, RuleSet>();
  #version = 0;

  constructor(keys: Keys, policy: Policy, options: TokenOptions) {
    this.#keys = keys;
    this.#policy = policy;
    this.#options = options;
  }

  /** Tokens remembered as verified. */
  get remembered(): number {
    return this.#verified.size;
  }

  /**
   * A token known and still good, without waiting.
   *
   * @throws Refusal `unauthorized` where it is known and out of its time
   */
  known(bearer: string, now: number): ScopedToken | undefined {
    if (this.#version !== this.#keys.version || this.#keys.stale) return undefined;
    const token = this.#verified.get(bearer);
    if (token !== undefined) checkTimes(token, now);
    return token;
  }

  /** @throws Refusal `unauthorized` */
  async verify(bearer: string, now: number): Promise<ScopedToken> {
    const keys = await this.#keys.current();
    const { version } = this.#keys;
    if (this.#version !== version) {
      this.#verified.clear();
      this.#version = version;
    }
    let token = this.#verified.get(bearer);
    if (token === undefined) {
      token = this.#read(await payloadOf(bearer, keys), now);
      // Keys that changed meanwhile may not be those that verified it.
      if (version === this.#keys.version) this.#remember(bearer, token);
    }
    checkTimes(token, now);
    return token;
  }

  #remember(bearer: string, token: ScopedToken): void {
    if (this.#verified.size >= VERIFIED_TOKENS) {
      const [oldest] = this.#verified.keys();
      if (oldest !== undefined) this.#verified.delete(oldest);
    }
    this.#verified.set(bearer, token);
  }

  #read(payload: string, now: number): ScopedToken {
    let claims: Map<string, Value>;
    try {
      claims = parseMembers(payload);
    } catch {
      return refuse("the token's claims are no json object");
    }
    const exp = secondsOf(claims, "exp");
    const { requireExp, maxAgeSeconds } = this.#options;
    if (exp === undefined && (requireExp || maxAgeSeconds !== null)) {
      refuse("the token has no exp: it must say when it ends");
    }
    if (maxAgeSeconds !== null && exp !== undefined && exp * 1_000 > now + maxAgeSeconds * 1_000) {
      refuse(`the token's exp lies further ahead than ${maxAgeSeconds} s`);
    }
    for (const claim of claims.values()) {
      if (claim instanceof Json && claim.isList && listValues(claim).length > CLAIM_VALUES) {
        refuse(`a claim of the token lists more than ${CLAIM_VALUES} values`);
      }
    }
    const subject = claims.get("sub");
    const notBefore = secondsOf(claims, "nbf");
    const rules = this.#ruleSet(claims);
    return {
      rules,
      claims,
      subject: typeof subject === "string" ? subject : "",
      rights: rightsOf(rules, claims),
      expiresAtMs: exp === undefined ? Number.POSITIVE_INFINITY : exp * 1_000,
      notBeforeMs: notBefore === undefined ? Number.NEGATIVE_INFINITY : notBefore * 1_000,
    };
  }

  #ruleSet(claims: ReadonlyMap<string, Value>): RuleSet {
    const roles = rolesOf(claims.get("role"));
    const concerns = (rule: Rule): boolean =>
      (rule.role === null || roles.has(rule.role)) && rule.claims.every((name) => (claims.get(name) ?? null) !== null);
    const key = this.#policy.rules.map((rule) => (concerns(rule) ? "1" : "0")).join("");
    let set = this.#sets.get(key);
    if (set === undefined) {
      set = new RuleSet(this.#policy, this.#policy.rules.filter(concerns));
      if (this.#sets.size >= RULE_SETS) this.#sets.clear();
      this.#sets.set(key, set);
    }
    return set;
  }
}

function checkTimes(token: ScopedToken, now: number): void {
  if (token.expiresAtMs <= now) refuse("the token has expired");
  if (token.notBeforeMs > now) refuse("the token is not good yet");
}

function rightsOf({ rules, appendOnly }: RuleSet, claims: ReadonlyMap<string, Value>): string {
  const names = [...new Set(rules.flatMap((rule) => rule.claims))].sort();
  const hash = createHash("sha256");
  hash.update(JSON.stringify(rules.map((rule) => [rule.collection, rule.grantTexts, rule.whereText])));
  hash.update(JSON.stringify(appendOnly));
  for (const name of names) hash.update(`\n${name} ${valueToJson(claims.get(name) ?? null)}`);
  return hash.digest("base64url").slice(0, 22);
}

async function payloadOf(bearer: string, keys: readonly VerifyingKey[]): Promise<string> {
  let kid: string | undefined;
  let algorithm: string | undefined;
  try {
    const header = decodeProtectedHeader(bearer);
    kid = typeof header.kid === "string" ? header.kid : undefined;
    algorithm = header.alg;
  } catch {
    return refuse("the token is not readable");
  }
  for (const key of keys) {
    // The key decides: a token that names another algorithm, or another key, is not tried on it.
    if (key.algorithm !== algorithm || (kid !== undefined && key.named && key.kid !== kid)) continue;
    try {
      const { payload } = await compactVerify(bearer, key.key, { algorithms: [key.algorithm] });
      return utf8.decode(payload);
    } catch {
      // Not this key; another may have made it.
    }
  }
  return refuse("the token is not signed by a key of this server");
}

function secondsOf(claims: ReadonlyMap<string, Value>, name: string): number | undefined {
  const value = claims.get(name) ?? null;
  if (value === null) return undefined;
  if (typeof value === "number") return value;
  if (value instanceof Float) return value.n;
  return refuse(`the token's ${name} is no number of seconds`);
}

function rolesOf(claim: Value | undefined): ReadonlySet<string> {
  if (typeof claim === "string") return new Set([claim]);
  const roles = new Set<string>();
  if (claim instanceof Json && claim.isList) {
    for (const role of listValues(claim)) if (typeof role === "string") roles.add(role);
  }
  return roles;
}

function refuse(words: string): never {
  throw new Refusal("unauthorized", words);
}
