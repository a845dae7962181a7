/**
 * Asking a server again until it answers. What passes by itself (no answer, too busy, stopping) is asked again after a
 * growing pause; a refusal is the caller's. An answer that never comes is given up after a time, because a network that
 * went silent closes nothing.
 */

import type { WorkerClock } from "./clock.ts";
import { FenecError } from "./error.ts";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

/** Whether the same request may be answered a moment later. */
export function isPassing(error: unknown): boolean {
  return error instanceof FenecError && (error.passing || error.code === "bad-answer");
}

export class Retry {
  readonly #clock: WorkerClock;
  readonly #onError: (error: unknown) => void;

  constructor(clock: WorkerClock, onError: (error: unknown) => void) {
    this.#clock = clock;
    this.#onError = onError;
  }

  /**
   * @param ask sends the request; the signal gives it up.
   * @param stop ends it all: the promise rejects with its reason.
   * @throws what is no passing error.
   */
  async untilAnswered<T>(ask: (signal: AbortSignal) => Promise<T>, timeoutMs: number, stop: AbortSignal): Promise<T> {
    for (let failures = 0; ; failures++) {
      try {
        return await within(this.#clock, timeoutMs, stop, ask);
      } catch (error) {
        if (stop.aborted) throw stop.reason;
        if (!isPassing(error)) throw error;
        this.#onError(error);
        await pause(this.#clock, pauseMs(failures, error), stop);
        if (stop.aborted) throw stop.reason;
      }
    }
  }
}

/** Doubling from 100 ms to 5 s, half of it at random so that a fleet does not come back as one. */
export function pauseMs(failures: number, error: unknown): number {
  const grown = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 16));
  const asked = error instanceof FenecError ? (error.retryAfterMs ?? 0) : 0;
  return Math.max(asked, grown * (0.5 + Math.random() / 2));
}

/** Ends early, without an error, when `stop` fires. */
export function pause(clock: WorkerClock, delayMs: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (stop.aborted) return resolve();
    const end = (): void => {
      cancel();
      stop.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.after(delayMs, end);
    stop.addEventListener("abort", end);
  });
}

/** Gives a request up after a time, as unanswered (`status` 0), or when `stop` fires. */
export async function within<T>(
  clock: WorkerClock,
  timeoutMs: number,
  stop: AbortSignal,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (stop.aborted) throw stop.reason;
  const controller = new AbortController();
  const end = (): void => controller.abort(stop.reason);
  stop.addEventListener("abort", end);
  const cancel = clock.after(timeoutMs, () => {
    controller.abort(new FenecError("unreachable", `no answer within ${timeoutMs} ms`, { status: 0 }));
  });
  try {
    return await ask(controller.signal);
  } finally {
    cancel();
    stop.removeEventListener("abort", end);
  }
}
