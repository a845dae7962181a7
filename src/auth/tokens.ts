/** Tokens: a bearer verified, its claims read, and the rules that concern it found. Verified ones are remembered. */

import { compactVerify, decodeProtectedHeader } from "jose";
import { CLAIM_VALUES, VERIFIED_TOKENS } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import { listValues, parseMembers } from "../value/json.ts";
import { Float, Json, type Value } from "../value/value.ts";
import type { Keys } from "./keys.ts";
import type { Policy, Rule } from "./policy.ts";
import { RuleSet } from "./rule_set.ts";

/** A token held to rules. */
export interface ScopedToken {
  readonly rules: RuleSet;
  readonly claims: ReadonlyMap<string, Value>;
  /** `sub`; empty when it has none. */
  readonly subject: string;
  readonly expiresAtMs: number;
  readonly notBeforeMs: number;
}

export interface TokenOptions {
  readonly requireExp: boolean;
  /** Seconds an `exp` may lie ahead at the most; null: any. */
  readonly maxAgeSeconds: number | null;
}

/** Kinds of tokens whose rules are kept put together. */
const RULE_SETS = 1_000;
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

  /** A token known and still good, without waiting. */
  known(bearer: string, now: number): ScopedToken | undefined {
    if (this.#keys.stale || this.#version !== this.#keys.version) return undefined;
    const token = this.#verified.get(bearer);
    if (token === undefined) return undefined;
    this.#checkTimes(token, now);
    return token;
  }

  /** @throws Refusal `unauthorized` */
  async verify(bearer: string, now: number): Promise<ScopedToken> {
    const keys = await this.#keys.current();
    if (this.#version !== this.#keys.version) {
      this.#verified.clear();
      this.#version = this.#keys.version;
    }
    let token = this.#verified.get(bearer);
    if (token === undefined) {
      token = this.#read(await payloadOf(bearer, keys), now);
      if (this.#verified.size >= VERIFIED_TOKENS) {
        const [oldest] = this.#verified.keys();
        if (oldest !== undefined) this.#verified.delete(oldest);
      }
      this.#verified.set(bearer, token);
    }
    this.#checkTimes(token, now);
    return token;
  }

  #checkTimes(token: ScopedToken, now: number): void {
    if (token.expiresAtMs <= now) refuse("the token has expired");
    if (token.notBeforeMs > now) refuse("the token is not good yet");
  }

  #read(payload: string, now: number): ScopedToken {
    let claims: Map<string, Value>;
    try {
      claims = parseMembers(payload);
    } catch {
      return refuse("the token's claims are no json object");
    }
    const exp = secondsOf(claims, "exp");
    if (exp === undefined && this.#options.requireExp) refuse("the token has no exp: it must say when it ends");
    const { maxAgeSeconds } = this.#options;
    if (maxAgeSeconds !== null && exp !== undefined && exp * 1_000 > now + maxAgeSeconds * 1_000) {
      refuse(`the token's exp lies further ahead than ${maxAgeSeconds} s`);
    }
    for (const [name, claim] of claims) {
      if (claim instanceof Json && claim.isList && listValues(claim).length > CLAIM_VALUES) {
        refuse(`the token's claim \`${name}\` lists more than ${CLAIM_VALUES} values`);
      }
    }
    const subject = claims.get("sub");
    const notBefore = secondsOf(claims, "nbf");
    return {
      rules: this.#ruleSet(claims),
      claims,
      subject: typeof subject === "string" ? subject : "",
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

async function payloadOf(bearer: string, keys: Awaited<ReturnType<Keys["current"]>>): Promise<string> {
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
    // The key decides: a token that names another algorithm than the key's is not tried on it.
    if (key.algorithm !== algorithm || (kid !== undefined && key.kid !== null && key.kid !== kid)) continue;
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
  return refuse(`the token's ${name} is a number of seconds`);
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
