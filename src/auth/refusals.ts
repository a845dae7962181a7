/** How long a refused token waits for its answer: longer with each refusal from its address within a minute. */

import { REFUSAL_DELAY_MS, REFUSED_ADDRESSES } from "../base/limits.ts";

const MINUTE_MS = 60_000;

export class RefusalDelays {
  readonly #firstMs: number;
  readonly #byAddress = new Map<string, { count: number; lastMs: number }>();

  /** @param firstMs the first refusal's delay; 0 turns it off */
  constructor(firstMs: number) {
    this.#firstMs = firstMs;
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

  /** A good token clears its address. */
  cleared(address: string): void {
    if (this.#byAddress.size > 0) this.#byAddress.delete(address);
  }
}
