/** A histogram of durations in fixed steps; observing one touches three numbers and makes nothing. */

import type { Exposition, Labels } from "./exposition.ts";

/** Upper ends in seconds: 100 µs to 10 s, the last one without end. */
export const DURATION_BOUNDS: readonly number[] = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

export class Histogram {
  readonly #bounds = Float64Array.from(DURATION_BOUNDS);
  readonly #counts = new Float64Array(DURATION_BOUNDS.length + 1);
  #sum = 0;

  observe(seconds: number): void {
    const bounds = this.#bounds;
    let place = 0;
    while (place < bounds.length && seconds > bounds[place]!) place++;
    this.#counts[place]!++;
    this.#sum += seconds;
  }

  write(out: Exposition, name: string, labels: Labels): void {
    let total = 0;
    for (let place = 0; place < this.#counts.length; place++) {
      total += this.#counts[place]!;
      const end = place < this.#bounds.length ? String(this.#bounds[place]) : "+Inf";
      out.sample(`${name}_bucket`, [...labels, ["le", end]], total);
    }
    out.sample(`${name}_sum`, labels, this.#sum);
    out.sample(`${name}_count`, labels, total);
  }
}
