/**
 * Where other rooms join the routes: who may ask, and the holding of claims. The routes run without either: everybody
 * is let in, and a claim that finds nothing is answered at once.
 */

import type { BatchOutcome, BatchRequest, Outcome, RequestContext, Scope } from "../engine/contract.ts";

/** Who asks. */
export interface Identity {
  /** `open`: nothing is asked of anybody; `full`: the server's token; `scoped`: a token held to rules. */
  readonly kind: "open" | "full" | "scoped";
  /** Null unless scoped. */
  readonly scope: Scope | null;
}

export const OPEN: Identity = { kind: "open", scope: null };

export interface Gate {
  /**
   * Reads the request's headers only. Throws `Refusal("unauthorized")`, after whatever delay it sees fit, for a token
   * that is missing or wrong.
   */
  authorize(request: Request): Identity | Promise<Identity>;
  /** The body of `GET /_whoami`. */
  whoami(identity: Identity): string;
}

export interface Hold {
  /**
   * Runs the request, and again when it could write, until it writes or the wait is over. `waitMs` is from 1 to
   * `WAIT_MS`; `gone` aborts when the client does, and then the promise may end in any way.
   * Throws, or rejects with, `Refusal`: `not_holdable` before anything is run.
   */
  query(request: BatchRequest, context: RequestContext, waitMs: number, gone: AbortSignal): Outcome | Promise<Outcome>;
  batch(
    requests: readonly BatchRequest[],
    context: RequestContext,
    waitMs: number,
    gone: AbortSignal,
  ): BatchOutcome | Promise<BatchOutcome>;
  /**
   * Undefined when nobody held has anything to take by now; else resolves once they have been served: a claim that is sent
   * meanwhile is to wait for that.
   */
  ahead(): Promise<void> | undefined;
  /** Answers all that is held with what it last found; nothing is held from then on. */
  release(): void;
  readonly held: number;
  readonly looks: number;
  readonly runs: number;
}
