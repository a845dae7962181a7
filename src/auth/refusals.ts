/**
 * How long a refused token waits for its answer: longer with each refusal from its address within a minute. Waiting costs
 * a connection, so past REFUSALS_WAITING of them the next are answered at once: guessing is slowed down, nobody is kept out.
 */

import { REFUSAL_DELAY_MS, REFUSALS_WAITING, REFUSED_ADDRESSES } from "../base/limits.ts";

const MINUTE_MS = 60_000;

export class RefusalDelays {
  readonly #firstMs: number;
  readonly #byAddress = new Map<string, { readonly count: number; readonly lastMs: number }>();
  #waiting = 0;

  /** @param firstMs the first refusal's delay; 0 turns it off */
  constructor(firstMs: number) {
    this.#firstMs = firstMs;
  }

  /** Whether any address is counted. */
  get idle(): boolean {
    return this.#byAddress.size === 0;
  }

  /** Counts a refusal, and says how many milliseconds its answer waits. */
  refused(address: string, nowMs: number): number {
    if (this.#firstMs === 0) return 0;
    const before = this.#byAddress.get(address);
    const count = before !== undefined && nowMs - before.lastMs < MINUTE_MS ? before.count : 0;
    // The oldest goes when there are too many; one that is counted again is the newest.
    this.#byAddress.delete(address);
    if (this.#byAddress.size >= REFUSED_ADDRESSES) {
      const [oldest] = this.#byAddress.keys();
      if (oldest !== undefined) this.#byAddress.delete(oldest);
    }
    this.#byAddress.set(address, { count: count + 1, lastMs: nowMs });
    return Math.min(REFUSAL_DELAY_MS, this.#firstMs * 2 ** Math.min(count, 30));
  }

  /** Resolves when a refusal may be answered; undefined: at once. */
  wait(delayMs: number): Promise<void> | undefined {
    if (delayMs <= 0 || this.#waiting >= REFUSALS_WAITING) return undefined;
    this.#waiting++;
    return new Promise((resolve) => {
      setTimeout(() => {
        this.#waiting--;
        resolve();
      }, delayMs);
    });
  }

  /** A good token clears its address. */
  cleared(address: string): void {
    this.#byAddress.delete(address);
  }
}
