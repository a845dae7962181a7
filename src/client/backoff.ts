/** How long a failed job rests before it is ready again. */

/** @param attempt which attempt failed, from 1. @returns milliseconds. */
export type Backoff = (attempt: number, error: unknown) => number;

export interface ExponentialOptions {
  /** The rest after the first attempt; 1 000. */
  readonly baseMs?: number;
  /** Each further attempt rests this many times longer; 2. */
  readonly factor?: number;
  /** No rest is longer, its jitter aside; an hour. */
  readonly maxMs?: number;
  /**
   * The part of a rest that is added at random, 0 to 1; 0.5. Without it, jobs that failed together in an outage come
   * back together, and again at each further attempt.
   */
  readonly jitter?: number;
  readonly random?: () => number;
}

/** 1 s, 2 s, 4 s, ... up to an hour, each up to half as much longer at random. */
export function exponential(options: ExponentialOptions = {}): Backoff {
  const { baseMs = 1_000, factor = 2, maxMs = 3_600_000, jitter = 0.5, random = Math.random } = options;
  return (attempt) => {
    const rest = Math.min(maxMs, baseMs * factor ** (Math.max(1, attempt) - 1));
    return Math.round(rest * (1 + jitter * random()));
  };
}
