/**
 * Long work in steps: a generator, so that whoever runs it may let others have their turn between two of them (a start
 * that answers for its health meanwhile), or not, and the work need not know which.
 */

/** Work that gives an `S` at the end of each step and a `T` at its own. */
export type Steps<T, S = void> = Generator<S, T, undefined>;

/** Runs the work to its end at once. */
export function toEnd<T>(steps: Steps<T, unknown>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}
