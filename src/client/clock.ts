/** The worker's time: durations by a clock that never jumps. Instants are the server's alone (`now() + ?`). */
export interface WorkerClock {
  /** Milliseconds since some moment; never goes back. */
  now(): number;
  /** Runs once, in so many milliseconds; the answer takes it back. */
  after(delayMs: number, run: () => void): () => void;
}

/** A timer of more milliseconds than this would run at once. */
const TIMER_MS = 2 ** 31 - 1;

export const realClock: WorkerClock = {
  now: () => performance.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, Math.min(Math.max(delayMs, 0), TIMER_MS));
    return () => clearTimeout(timer);
  },
};
