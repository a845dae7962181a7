/** An engine over memory with its held claims, on a clock that moves when told: what a waiting client sees, without one. */

import { Refusal } from "../../src/base/refusal.ts";
import { TestClock } from "../../src/clock/clock.ts";
import type { BatchOutcome, BatchRequest, Outcome, RequestContext } from "../../src/engine/contract.ts";
import { Engine } from "../../src/engine/engine.ts";
import { KeptAnswers } from "../../src/engine/idempotency.ts";
import { MemoryJournal } from "../../src/engine/journal.ts";
import { BOUNDS } from "../../src/hold/bounds.ts";
import { HeldClaims } from "../../src/hold/held_claims.ts";
import { Store } from "../../src/store/store.ts";
import type { Value } from "../../src/value/value.ts";

export const START_MS = Date.UTC(2026, 0, 1);
export const ANYBODY: RequestContext = { scope: null, idempotencyKey: null, requestHash: "" };

/** Answered how: `body` of what was given, or the refusal's code; and when. */
export interface Said {
  readonly said: string;
  readonly atMs: number;
  /** The place of this answer among all of its hall. */
  readonly order: number;
}

export class Guest {
  answer: Said | undefined;
  /** How often it was answered: it must be once. */
  answers = 0;
  readonly #gone = new AbortController();

  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  get said(): string | undefined {
    return this.answer?.said;
  }

  /** Its client goes away. */
  leave(): void {
    this.#gone.abort();
  }
}

export function sayingOf(answer: Outcome | BatchOutcome): string {
  if ("outcomes" in answer) return answer.outcomes.map((each) => each.batchBody).join();
  return answer.body;
}

export function engineOn(clock: { now(): number }): Engine {
  return new Engine({
    store: new Store(),
    journal: new MemoryJournal(),
    clock: clock as TestClock,
    seq: 0,
    readOnly: false,
    maxMemoryBytes: Number.POSITIVE_INFINITY,
    answers: new KeptAnswers(86_400_000),
    compact: () => {},
  });
}

/** What a statement answers, or the code it is refused with. */
export function ran(run: () => Outcome | BatchOutcome): string {
  try {
    return sayingOf(run());
  } catch (error) {
    if (error instanceof Refusal) return error.code;
    throw error;
  }
}

export class Hall {
  readonly clock = new TestClock(START_MS);
  readonly engine = engineOn(this.clock);
  readonly held: HeldClaims;
  #answers = 0;

  constructor(bounds = BOUNDS) {
    this.held = new HeldClaims(this.engine, this.clock, bounds);
  }

  get nowMs(): number {
    return this.clock.now();
  }

  /** Runs a statement; what it set off has been done when this comes back. */
  async run(text: string, params: readonly Value[] = [], context = ANYBODY): Promise<string> {
    const said = ran(() => this.engine.query(text, params, context));
    await settled();
    return said;
  }

  /** All of them in one turn. */
  async together(...texts: readonly string[]): Promise<void> {
    for (const text of texts) this.engine.query(text, [], ANYBODY);
    await settled();
  }

  hold(text: string, params: readonly Value[] = [], waitMs = 30_000, context = ANYBODY): Guest {
    return this.#guest((guest) => this.held.query({ text, params }, context, waitMs, guest.signal));
  }

  holdBatch(requests: readonly BatchRequest[], waitMs = 30_000, context = ANYBODY): Guest {
    return this.#guest((guest) => this.held.batch(requests, context, waitMs, guest.signal));
  }

  async advance(byMs: number): Promise<void> {
    await this.clock.advance(byMs);
  }

  #guest(ask: (guest: Guest) => Outcome | BatchOutcome | Promise<Outcome | BatchOutcome>): Guest {
    const guest = new Guest();
    const say = (said: string): void => {
      guest.answers++;
      guest.answer = { said, atMs: this.clock.now(), order: this.#answers++ };
    };
    const refuse = (error: unknown): void => {
      if (!(error instanceof Refusal)) throw error;
      say(error.code);
    };
    try {
      const answer = ask(guest);
      if (answer instanceof Promise) answer.then((given) => say(sayingOf(given)), refuse);
      else say(sayingOf(answer));
    } catch (error) {
      refuse(error);
    }
    return guest;
  }
}

/** What was put off to the next turns of the event loop has been done. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

export function idsIn(said: string | undefined): number[] {
  return [...(said ?? "").matchAll(/"id":(\d+)/g)].map(([, id]) => Number(id));
}
