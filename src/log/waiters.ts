/**
 * Who waits for what was written to be on disk: those for the sync under way, and those for the one behind it. One
 * promise a sync, made when the first of them comes, not one a request.
 */

import type { Refusal } from "../base/refusal.ts";

interface Group {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (why: Refusal) => void;
}

export class Waiters {
  #current: Group | null = null;
  #next: Group | null = null;

  /** Settles with the sync under way. */
  current(): Promise<void> {
    this.#current ??= newGroup();
    return this.#current.promise;
  }

  /** Settles with the sync that begins next. */
  next(): Promise<void> {
    this.#next ??= newGroup();
    return this.#next.promise;
  }

  /** A sync begins: who waited for the next one waits for this. */
  begun(): void {
    this.#current = this.#next;
    this.#next = null;
  }

  /** The sync under way is over; `all`: nothing was written since it began, so nobody need wait for another. */
  reached(all: boolean): void {
    const current = this.#current;
    this.#current = null;
    current?.resolve();
    if (!all) return;
    const next = this.#next;
    this.#next = null;
    next?.resolve();
  }

  failed(why: Refusal): void {
    const groups = [this.#current, this.#next];
    this.#current = null;
    this.#next = null;
    for (const group of groups) group?.reject(why);
  }
}

function newGroup(): Group {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // Whoever waits hears of it; a group all of whose waiters are gone is no unhandled error.
  promise.catch(() => {});
  return { promise, resolve, reject };
}
