/** One held request: run once, found nothing, and kept until it writes or its wait is over. Answered exactly once. */

import { assert } from "../base/assert.ts";
import type { Refusal, RefusalData } from "../base/refusal.ts";
import type { Moment } from "../clock/wheel.ts";
import type { BatchOutcome, BatchRequest, Outcome, RequestContext } from "../engine/contract.ts";
import type { Prepared as Planned } from "../engine/engine.ts";
import { keyName } from "../engine/idempotency.ts";
import type { Line } from "./line.ts";

export type Answer = Outcome | BatchOutcome;

/** How a run went: an answer, or the refusal it ended in. */
export type Run = { readonly answer: Answer } | { readonly refusal: Refusal };

export interface Prepared extends Planned {
  readonly request: BatchRequest;
}

/** What a refusal before anything is run says of the place of the statement it is about. */
export type PlaceOf = (at: number) => RefusalData;

export interface HeldRequest {
  /** Runs the request as it stands. Throws Refusal. */
  readonly run: () => Answer;
  readonly context: RequestContext;
  readonly placeOf: PlaceOf;
  /** The request's statements, planned over the schema as it is. */
  readonly prepare: () => Prepared[];
}

export class Waiter {
  readonly request: HeldRequest;
  /** Rises with each request held: the least is held longest. */
  readonly order: number;
  /** What a run needs that others of its line may not: its `limit`s and `require`s. */
  readonly need: string;
  /** The name of its idempotency key; null without one. */
  readonly key: string | null;
  line: Line | null = null;
  last: Run;
  end: Moment | null = null;
  /** Its neighbours of the same need, held before and after it. */
  before: Waiter | null = null;
  after: Waiter | null = null;
  readonly #settle: (run: Run) => void;
  #answered = false;

  constructor(request: HeldRequest, order: number, need: string, last: Run, settle: (run: Run) => void) {
    this.request = request;
    this.order = order;
    this.need = need;
    this.last = last;
    const { scope, idempotencyKey } = request.context;
    this.key = idempotencyKey === null ? null : keyName(scope?.subject ?? "", idempotencyKey);
    this.#settle = settle;
  }

  get answered(): boolean {
    return this.#answered;
  }

  settle(run: Run): void {
    assert(!this.#answered, "a held request is answered once");
    this.#answered = true;
    this.#settle(run);
  }
}
