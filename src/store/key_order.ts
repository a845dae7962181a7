/**
 * The order in which rows, given by ascending id, go into an index at once. Both ways are stable, so rows with equal
 * keys stay by id, and both look first whether there is anything to do: a queue's times mostly rise with its ids.
 */

/** Positions in ascending order of keys; none may be NaN. */
export function orderOfNumbers(keys: Float64Array): Uint32Array {
  const count = keys.length;
  let order: Uint32Array = identityOrder(count);
  let sorted = true;
  for (let i = 1; i < count && sorted; i++) sorted = (keys[i - 1] as number) <= (keys[i] as number);
  if (sorted) return order;
  // A radix sort over the bits of the doubles, two bytes at a time. A double's bits rise with it once the sign bit of
  // the positive and all bits of the negative ones are flipped; adding 0 makes -0 and 0 one.
  const bits = new Uint32Array(count * 2);
  const doubles = new Float64Array(bits.buffer);
  for (let i = 0; i < count; i++) doubles[i] = (keys[i] as number) + 0;
  for (let i = 0; i < count; i++) {
    const high = bits[i * 2 + 1] as number;
    if (high >= 0x80000000) {
      bits[i * 2] = ~(bits[i * 2] as number);
      bits[i * 2 + 1] = ~high;
    } else bits[i * 2 + 1] = high | 0x80000000;
  }
  let next: Uint32Array = new Uint32Array(count);
  const starts = new Uint32Array(0x10000);
  for (let pass = 0; pass < 4; pass++) {
    const word = pass >> 1;
    const shift = (pass & 1) * 16;
    starts.fill(0);
    for (let i = 0; i < count; i++) {
      const digit = ((bits[i * 2 + word] as number) >>> shift) & 0xffff;
      starts[digit] = (starts[digit] as number) + 1;
    }
    // A digit that all keys share orders nothing.
    const first = ((bits[word] as number) >>> shift) & 0xffff;
    if (starts[first] === count) continue;
    let start = 0;
    for (let digit = 0; digit < 0x10000; digit++) {
      const here = starts[digit] as number;
      starts[digit] = start;
      start += here;
    }
    for (let i = 0; i < count; i++) {
      const position = order[i] as number;
      const digit = ((bits[position * 2 + word] as number) >>> shift) & 0xffff;
      const place = starts[digit] as number;
      starts[digit] = place + 1;
      next[place] = position;
    }
    [order, next] = [next, order];
  }
  return order;
}

/** Positions in ascending order of keys of any kind. */
export function orderOfKeys<K>(keys: readonly K[], compare: (a: K, b: K) => number): Uint32Array {
  const count = keys.length;
  let order: Uint32Array = identityOrder(count);
  let sorted = true;
  for (let i = 1; i < count && sorted; i++) sorted = compare(keys[i - 1] as K, keys[i] as K) <= 0;
  if (sorted) return order;
  // A merge sort from the bottom up: the built-in sort over positions pays a call more a comparison.
  let next: Uint32Array = new Uint32Array(count);
  for (let width = 1; width < count; width *= 2) {
    for (let from = 0; from < count; from += width * 2) {
      const middle = Math.min(from + width, count);
      const end = Math.min(from + width * 2, count);
      let left = from;
      let right = middle;
      for (let at = from; at < end; at++) {
        const fromLeft =
          left < middle &&
          (right >= end || compare(keys[order[left] as number] as K, keys[order[right] as number] as K) <= 0);
        next[at] = order[fromLeft ? left++ : right++] as number;
      }
    }
    [order, next] = [next, order];
  }
  return order;
}

function identityOrder(count: number): Uint32Array {
  const order = new Uint32Array(count);
  for (let i = 0; i < count; i++) order[i] = i;
  return order;
}
