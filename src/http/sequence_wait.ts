/**
 * `Fenec-After`: requests that wait until this server holds a change. The engine's changes wake them, so they cost nothing
 * while none comes; they are given up at the end of their patience.
 */

import { Refusal } from "../base/refusal.ts";
import type { Clock, Scheduled } from "../clock/clock.ts";
import type { EngineContract } from "../engine/contract.ts";

interface Waiting {
  readonly seq: number;
  readonly reached: () => void;
  readonly refused: (why: Refusal) => void;
}

export class SequenceWait {
  readonly #clock: Clock;
  readonly #engine: EngineContract;
  readonly #waiting = new Set<Waiting>();

  constructor(clock: Clock, engine: EngineContract) {
    this.#clock = clock;
    this.#engine = engine;
    engine.watch((_change, at) => this.#changed(at));
  }

  get size(): number {
    return this.#waiting.size;
  }

  /**
   * Undefined when the change is there. Else resolves in the turn it comes; rejects with `not_reached` when it does not
   * come in time, and when the client goes.
   */
  until(seq: number, patienceMs: number, gone: AbortSignal): Promise<void> | undefined {
    if (this.#engine.seq >= seq) return undefined;
    return new Promise<void>((resolve, reject) => {
      const end = (settle: () => void): void => {
        this.#waiting.delete(waiting);
        patience.cancel();
        gone.removeEventListener("abort", leave);
        settle();
      };
      const waiting: Waiting = {
        seq,
        reached: () => end(resolve),
        refused: (why) => end(() => reject(why)),
      };
      const missed = (): Refusal =>
        new Refusal("not_reached", `change ${seq} has not come: this server stands at ${this.#engine.seq}`, {
          seq: this.#engine.seq,
        });
      const leave = (): void => waiting.refused(missed());
      const patience: Scheduled = this.#clock.after(patienceMs, leave);
      gone.addEventListener("abort", leave);
      this.#waiting.add(waiting);
    });
  }

  /** The server stops: nobody waits any longer. */
  release(): void {
    for (const waiting of [...this.#waiting]) waiting.refused(new Refusal("stopping", "the server is stopping"));
  }

  #changed(at: number): void {
    if (this.#waiting.size === 0) return;
    for (const waiting of [...this.#waiting]) if (waiting.seq <= at) waiting.reached();
  }
}
