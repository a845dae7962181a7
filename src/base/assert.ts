/** Broken assumptions: an assertion that fails is a defect of the server, never of a user's input. */

export class AssertionFailure extends Error {
  override readonly name = "AssertionFailure";
}

export function assert(condition: boolean, what: string): asserts condition {
  if (!condition) throw new AssertionFailure(what);
}

/** For the end of an exhaustive switch. */
export function unreachable(value: never): never {
  throw new AssertionFailure(`unreachable: ${String(value)}`);
}
