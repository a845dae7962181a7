/** A question that may itself be refused. What cannot be asked is run all the same, and the run says why. */

import { Refusal } from "../base/refusal.ts";

/** Undefined where it was refused. */
export function tried<T>(ask: () => T): T | undefined {
  try {
    return ask();
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}
