/** Freezing trees that a cached plan may share among requests. Values inside constants are immutable by their own kind. */

/** Freezes the plain objects and arrays of a tree, and answers it. */
export function deepFreeze<T extends object>(tree: T): T {
  const pending: object[] = [tree];
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    if (Object.isFrozen(node)) continue;
    Object.freeze(node);
    for (const member of Object.values(node) as unknown[]) {
      if (typeof member !== "object" || member === null) continue;
      const prototype: unknown = Object.getPrototypeOf(member);
      if (prototype === Object.prototype || prototype === Array.prototype) pending.push(member);
    }
  }
  return tree;
}
