/** Who a request is: asked before anything of it is looked at. */

import { createHash, timingSafeEqual } from "node:crypto";
import { Refusal } from "../base/refusal.ts";
import type { Clock } from "../clock/clock.ts";
import type { Rule } from "./policy.ts";
import { RefusalDelays } from "./refusals.ts";
import type { ScopedToken, Tokens } from "./tokens.ts";

export interface Identity {
  /** `open`: nothing is asked of anybody; `full`: the server's token; `scoped`: a token held to rules. */
  readonly kind: "open" | "full" | "scoped";
  readonly scope: ScopedToken | null;
  readonly subject?: string;
}

export interface GateOptions {
  /** The server's token; null: there is none. */
  readonly token: string | null;
  /** Null where no token but the server's is taken. */
  readonly tokens: Tokens | null;
  readonly delayMs: number;
  readonly clock: Clock;
  readonly addressOf: (request: Request) => string;
  readonly readOnly: boolean;
  /** Told of each refusal. */
  readonly refused: (address: string, why: string) => void;
}

const OPEN: Identity = { kind: "open", scope: null };
const FULL: Identity = { kind: "full", scope: null };
const BEARER = /^Bearer +(\S+)$/i;

export class Gate {
  readonly #options: GateOptions;
  readonly #delays: RefusalDelays;
  readonly #digest: Buffer | null;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#delays = new RefusalDelays(options.delayMs);
    this.#digest = options.token === null ? null : digestOf(options.token);
  }

  /** @throws Refusal `unauthorized`, after its delay */
  authorize(request: Request): Identity | Promise<Identity> {
    const { token, tokens, clock } = this.#options;
    if (token === null && tokens === null) return OPEN;
    const bearer = BEARER.exec(request.headers.get("authorization") ?? "")?.[1];
    if (bearer === undefined) return this.#refuse(request, "this server asks for a token: Authorization: Bearer ...");
    if (this.#digest !== null && timingSafeEqual(digestOf(bearer), this.#digest)) return this.#let(request, FULL);
    if (tokens === null || bearer.split(".").length !== 3)
      return this.#refuse(request, "the token is not this server's");
    try {
      const known = tokens.known(bearer, clock.now());
      if (known !== undefined) return this.#let(request, scoped(known));
    } catch (error) {
      return this.#refuse(request, wordsOf(error));
    }
    return tokens.verify(bearer, clock.now()).then(
      (verified) => this.#let(request, scoped(verified)),
      (error: unknown) => this.#refuse(request, wordsOf(error)),
    );
  }

  /** The body of `GET /_whoami`: a token is told its own rules alone. */
  whoami({ kind, scope }: Identity): string {
    const rules = scope === null ? [] : scope.rules.rules;
    return JSON.stringify({
      read_only: this.#options.readOnly,
      kind,
      sub: scope === null || scope.subject === "" ? null : scope.subject,
      append_only:
        rules.length === 0
          ? []
          : [...new Set(rules.map((rule) => rule.collection))].filter((name) => scope?.rules.of(name)?.appendOnly),
      rules: rules.map(ruleText),
    });
  }

  #let(request: Request, identity: Identity): Identity {
    this.#delays.cleared(this.#options.addressOf(request));
    return identity;
  }

  async #refuse(request: Request, why: string): Promise<never> {
    const address = this.#options.addressOf(request);
    this.#options.refused(address, why);
    const delayMs = this.#delays.refused(address, performance.now());
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
    throw new Refusal("unauthorized", why);
  }
}

function scoped(token: ScopedToken): Identity {
  return { kind: "scoped", scope: token, subject: token.subject };
}

function ruleText(rule: Rule): Readonly<Record<string, unknown>> {
  return {
    collection: rule.collection,
    grants: rule.grantTexts.map((grant) => grant.replace(/\(.*$/s, "")),
    fields: rule.fields === null ? null : [...rule.fields],
    rows: rule.whereText === "" ? null : rule.whereText,
  };
}

function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

function wordsOf(error: unknown): string {
  if (error instanceof Refusal) return error.message;
  throw error;
}
