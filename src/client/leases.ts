/**
 * The leases a worker holds, extended every third of their length, many in one request. A lease is lost when the server
 * says the row is no longer the worker's, or when no extension got through in time. An extended lease is counted from
 * the moment its request was sent, so the worker never believes it longer than the server does; a claim's is counted
 * from its answer, since a held claim was sent long before it took anything.
 */

import type { WorkerClock } from "./clock.ts";
import { expr, raw } from "./expression.ts";
import type { Query } from "./query.ts";
import { within } from "./retry.ts";
import type { LooseFields } from "./schema.ts";

/** A job held under a claim's token. */
export interface Lease {
  readonly id: unknown;
  readonly owner: string;
}

/** Extensions in one request. */
const BATCH = 500;

/** The row of a job while its lease is the worker's. The last condition keeps a late word from reviving a lapsed lease. */
export function rowOf(queue: Query<LooseFields>, lease: Lease): Query<LooseFields> {
  return queue.where("id", lease.id).where("owner", lease.owner).where(raw("run_at > now()"));
}

export class Leases<L extends Lease> {
  readonly #queue: Query<LooseFields>;
  readonly #leaseMs: number;
  readonly #clock: WorkerClock;
  readonly #onLost: (lease: L) => void;
  readonly #onError: (error: unknown) => void;
  /** Each with what takes its deadline back. */
  readonly #held = new Map<L, () => void>();
  readonly #stop = new AbortController();
  #cancelBeat: () => void;

  /** @param queue the bare collection, bound. */
  constructor(
    queue: Query<LooseFields>,
    leaseMs: number,
    clock: WorkerClock,
    onLost: (lease: L) => void,
    onError: (error: unknown) => void,
  ) {
    this.#queue = queue;
    this.#leaseMs = leaseMs;
    this.#clock = clock;
    this.#onLost = onLost;
    this.#onError = onError;
    this.#cancelBeat = clock.after(leaseMs / 3, () => void this.#beat());
  }

  hold(lease: L): void {
    this.#arm(lease, this.#leaseMs);
  }

  /** The lease is neither extended nor lost any more; false if it was lost before. */
  release(lease: L): boolean {
    this.#held.get(lease)?.();
    return this.#held.delete(lease);
  }

  /** Extends leases of a claim answered long after it ran, and holds those the server still grants; gives these. */
  async confirm(leases: readonly L[], signal: AbortSignal): Promise<readonly L[]> {
    const confirmed: L[] = [];
    for (let from = 0; from < leases.length; from += BATCH) {
      for (const { lease, granted, leftMs } of await this.#ask(leases.slice(from, from + BATCH), signal)) {
        if (!granted) continue;
        this.#arm(lease, leftMs);
        confirmed.push(lease);
      }
    }
    return confirmed;
  }

  end(): void {
    this.#stop.abort(new Error("the worker has ended"));
    this.#cancelBeat();
    for (const cancel of this.#held.values()) cancel();
    this.#held.clear();
  }

  async #beat(): Promise<void> {
    let nextMs = this.#leaseMs / 3;
    try {
      const held = [...this.#held.keys()];
      for (let from = 0; from < held.length; from += BATCH) await this.#extend(held.slice(from, from + BATCH));
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      this.#onError(error);
      // There is still time for a few more tries before the leases end.
      nextMs = this.#leaseMs / 12;
    }
    if (!this.#stop.signal.aborted) this.#cancelBeat = this.#clock.after(nextMs, () => void this.#beat());
  }

  async #extend(leases: readonly L[]): Promise<void> {
    const answers = await within(this.#clock, this.#leaseMs / 3, this.#stop.signal, (signal) =>
      this.#ask(leases, signal),
    );
    for (const { lease, granted, leftMs } of answers) {
      // Settled meanwhile: its row may be gone for the best of reasons.
      if (!this.#held.has(lease)) continue;
      if (granted) this.#arm(lease, leftMs);
      else this.#lose(lease);
    }
  }

  async #ask(
    leases: readonly L[],
    signal: AbortSignal,
  ): Promise<readonly { readonly lease: L; readonly granted: boolean; readonly leftMs: number }[]> {
    const sent = this.#clock.now();
    const runAt = expr("now() + ?", this.#leaseMs);
    const statements = leases.map((lease) => rowOf(this.#queue, lease).toUpdate({ run_at: runAt }));
    const { results } = await this.#queue.database.batch(statements, { signal });
    const leftMs = this.#leaseMs - (this.#clock.now() - sent);
    return leases.map((lease, index) => ({ lease, granted: results[index]?.affected === 1, leftMs }));
  }

  #arm(lease: L, leftMs: number): void {
    this.#held.get(lease)?.();
    this.#held.set(
      lease,
      this.#clock.after(leftMs, () => this.#lose(lease)),
    );
  }

  #lose(lease: L): void {
    if (this.release(lease)) this.#onLost(lease);
  }
}
