/**
 * What a nearest walk has in sight: regions still to be looked into, by the least distance anything in them can have,
 * and rows, by their distance. The nearest comes out first; at one distance regions before rows, since a region may
 * hold a row of a lower id, and rows by id.
 */

/** Room a frontier keeps between walks. */
const KEPT = 1024;

export class Frontier<Region extends object, R extends readonly unknown[]> {
  #size = 0;
  #metres = new Float64Array(KEPT);
  /** A region is anything but an array, which a row is. */
  readonly #sights: (Region | R | undefined)[] = [];

  get size(): number {
    return this.#size;
  }

  push(metres: number, sight: Region | R): void {
    if (this.#size === this.#metres.length) {
      const grown = new Float64Array(this.#size * 2);
      grown.set(this.#metres);
      this.#metres = grown;
    }
    const distances = this.#metres;
    const sights = this.#sights;
    let at = this.#size++;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const other = distances[above] as number;
      if (other < metres || (other === metres && !comesFirst(sight, sights[above] as Region | R))) break;
      distances[at] = other;
      sights[at] = sights[above];
      at = above;
    }
    distances[at] = metres;
    sights[at] = sight;
  }

  /** The distance of what comes out next. */
  get metres(): number {
    return this.#metres[0] as number;
  }

  pop(): Region | R {
    const distances = this.#metres;
    const sights = this.#sights;
    const first = sights[0] as Region | R;
    const last = --this.#size;
    const metres = distances[last] as number;
    const sight = sights[last] as Region | R;
    sights[last] = undefined;
    if (last === 0) return first;
    this.#sink(0, metres, sight);
    return first;
  }

  /** Drops what fails the test. */
  keep(test: (sight: Region | R) => boolean): void {
    let kept = 0;
    for (let i = 0; i < this.#size; i++) {
      const sight = this.#sights[i] as Region | R;
      if (!test(sight)) continue;
      this.#metres[kept] = this.#metres[i] as number;
      this.#sights[kept] = sight;
      kept++;
    }
    this.#sights.fill(undefined, kept, this.#size);
    this.#size = kept;
    for (let at = (kept >> 1) - 1; at >= 0; at--) {
      this.#sink(at, this.#metres[at] as number, this.#sights[at] as Region | R);
    }
  }

  /** Puts a sight at a place or below it, lifting what comes first. */
  #sink(start: number, metres: number, sight: Region | R): void {
    const distances = this.#metres;
    const sights = this.#sights;
    const size = this.#size;
    let at = start;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= size) break;
      const right = below + 1;
      if (right < size) {
        const a = distances[below] as number;
        const b = distances[right] as number;
        if (b < a || (b === a && comesFirst(sights[right] as Region | R, sights[below] as Region | R))) below = right;
      }
      const other = distances[below] as number;
      if (metres < other || (metres === other && !comesFirst(sights[below] as Region | R, sight))) break;
      distances[at] = other;
      sights[at] = sights[below];
      at = below;
    }
    distances[at] = metres;
    sights[at] = sight;
  }

  /** Forgets what it holds; a later walk may use it again. */
  clear(): void {
    if (this.#size > KEPT) {
      this.#sights.length = 0;
      this.#metres = new Float64Array(KEPT);
    } else {
      this.#sights.fill(undefined, 0, this.#size);
    }
    this.#size = 0;
  }
}

/** At one distance. */
function comesFirst(a: object | readonly unknown[], b: object | readonly unknown[]): boolean {
  if (!Array.isArray(a)) return true;
  return Array.isArray(b) && (a[0] as number) < (b[0] as number);
}
