/** Places in a segment to begin reading at, one for each 64 KiB of it: what stands in for an index of the log. */

export interface Mark {
  readonly position: number;
  /** The change counter after the frame of that position. */
  readonly seq: number;
  readonly offset: number;
}

const MARK_BYTES = 64 * 1024;

export class Marks {
  readonly #marks: Mark[] = [];
  #nextAt = 0;

  /** Told of every frame in order; keeps one now and then, the first always. */
  note(position: number, seq: number, offset: number): void {
    if (offset < this.#nextAt) return;
    this.#nextAt = offset + MARK_BYTES;
    this.#marks.push({ position, seq, offset });
  }

  /** The last one at or before a position; the first when all are behind it; undefined when there is none. */
  at(position: number): Mark | undefined {
    return this.#marks[Math.max(0, this.#countUpTo(position, (mark) => mark.position) - 1)];
  }

  /** The last one whose frame ends at or before a change counter. */
  before(seq: number): Mark | undefined {
    return this.#marks[this.#countUpTo(seq, (mark) => mark.seq) - 1];
  }

  #countUpTo(value: number, of: (mark: Mark) => number): number {
    let low = 0;
    let high = this.#marks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (of(this.#marks[middle]!) <= value) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
