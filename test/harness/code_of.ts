/** Which refusal a piece of work ends in. */

import { Refusal } from "../../src/base/refusal.ts";

/** `none` when it goes through; anything else that is thrown is thrown on. */
export function codeOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof Refusal) return error.code;
    throw error;
  }
  return "none";
}

/** The same of what a promise ends in. */
export async function codeOfPromise(promise: Promise<unknown> | undefined): Promise<string> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof Refusal) return error.code;
    throw error;
  }
  return "none";
}
