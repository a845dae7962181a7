/** Who a request is: asked before anything of it is looked at. */

import { createHash, timingSafeEqual } from "node:crypto";
import { Refusal } from "../base/refusal.ts";
import type { Rule } from "./policy.ts";
import { RefusalDelays } from "./refusals.ts";
import type { ScopedToken, Tokens } from "./tokens.ts";

export interface Identity {
  /** `open`: nothing is asked of anybody; `full`: the server's token; `scoped`: a token held to rules. */
  readonly kind: "open" | "full" | "scoped";
  readonly scope: ScopedToken | null;
}

export interface GateOptions {
  /** The server's token; null: there is none. */
  readonly token: string | null;
  /** Null where no token but the server's is taken. */
  readonly tokens: Tokens | null;
  /** Before the first refusal of an address is answered. */
  readonly delayMs: number;
  /** Epoch ms. */
  readonly now: () => number;
  readonly addressOf: (request: Request) => string;
  readonly readOnly: boolean;
  /** The origin whose pages may ask where nobody is asked for a token, `*` for any, null for none but the server's own. */
  readonly cors: string | null;
}

const OPEN: Identity = { kind: "open", scope: null };
const FULL: Identity = { kind: "full", scope: null };
const BEARER = /^Bearer +(\S+) *$/i;

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
    const { token, tokens, now } = this.#options;
    if (token === null && tokens === null) return this.#open(request);
    const sent = request.headers.get("authorization");
    if (sent === null) return this.#refuse(request, "this server asks for a token: Authorization: Bearer ...");
    const bearer = BEARER.exec(sent)?.[1];
    if (bearer === undefined) return this.#refuse(request, "a token is sent as Authorization: Bearer ...");
    try {
      // A look-up by the whole text tells nothing of how much of it was right.
      const known = tokens?.known(bearer, now());
      if (known !== undefined) return this.#let(request, { kind: "scoped", scope: known });
    } catch (error) {
      return this.#refuse(request, wordsOf(error));
    }
    if (this.#digest !== null && timingSafeEqual(digestOf(bearer), this.#digest)) return this.#let(request, FULL);
    if (tokens === null || bearer.split(".").length !== 3) {
      return this.#refuse(request, "the token is not this server's");
    }
    return tokens.verify(bearer, now()).then(
      (scope) => this.#let(request, { kind: "scoped", scope }),
      (error: unknown) => this.#refuse(request, wordsOf(error)),
    );
  }

  /** The body of `GET /_whoami`: a token is told its own rules alone. */
  whoami({ kind, scope }: Identity): string {
    return JSON.stringify({
      read_only: this.#options.readOnly,
      kind,
      sub: scope === null || scope.subject === "" ? null : scope.subject,
      tenants: null,
      unbound: scope === null,
      append_only: scope === null ? [] : scope.rules.appendOnly,
      rules: scope === null ? [] : scope.rules.rules.map(ruleText),
    });
  }

  /** Any page a browser on this machine shows can send requests here, and without a token nothing else tells them apart. */
  #open(request: Request): Identity {
    const origin = request.headers.get("origin");
    const { cors } = this.#options;
    if (origin === null || cors === "*" || cors === origin) return OPEN;
    if (isLocal(origin) && origin === `http://${request.headers.get("host")}`) return OPEN;
    throw new Refusal(
      "forbidden",
      "no page of another origin may ask here: the server was started without --cors for it",
    );
  }

  #let(request: Request, identity: Identity): Identity {
    if (!this.#delays.idle) this.#delays.cleared(this.#options.addressOf(request));
    return identity;
  }

  async #refuse(request: Request, why: string): Promise<never> {
    const delayMs = this.#delays.refused(this.#options.addressOf(request), performance.now());
    await this.#delays.wait(delayMs);
    throw new Refusal("unauthorized", why);
  }
}

/** A name that is an address, so that no other page's name leads here. */
function isLocal(origin: string): boolean {
  return /^http:\/\/(localhost|\[[\da-f:.]+\]|[\d.]+)(:\d+)?$/i.test(origin);
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
