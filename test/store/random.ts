/** Chance for the tests, from a seed that a failure prints and FENEC_SEED gives back. */

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0 to below `count`. */
  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }
}

export function withRandom(run: (random: Random) => void): void {
  const { FENEC_SEED: given } = process.env;
  const seed = given === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(given);
  try {
    run(new Random(seed));
  } catch (failure) {
    console.error(`FENEC_SEED=${seed} repeats this failure`, failure instanceof Error ? failure.stack : failure);
    throw failure;
  }
}
