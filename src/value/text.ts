/**
 * Text compared by its UTF-8 bytes. UTF-16 order differs from it in one place only: a surrogate pair, which stands for a
 * code point past U+FFFF, sorts before U+E000 to U+FFFF there. Half a pair counts as the code point of its own number, so
 * the order is total over every string.
 */

/** Negative, 0 or positive. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left !== right) {
      return left < 0xd800 || right < 0xd800 ? left - right : compareFrom(a, b, i);
    }
  }
  return a.length - b.length;
}

/** The first difference is between two units of which neither is below the surrogates. */
function compareFrom(a: string, b: string, at: number): number {
  let i = at;
  if (i > 0) {
    // The unit before is the same in both; if it opens a pair in one of them, the pair is what differs.
    const before = a.charCodeAt(i - 1);
    if (before >= 0xd800 && before <= 0xdbff) i--;
  }
  const difference = a.codePointAt(i)! - b.codePointAt(i)!;
  return difference !== 0 ? difference : a.codePointAt(at)! - b.codePointAt(at)!;
}
