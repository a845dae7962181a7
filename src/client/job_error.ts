/** A failure whose handler knows what should become of the job. Any other error rests by the worker's backoff. */

export interface JobErrorOptions {
  /** How long the job rests, in place of the backoff. */
  readonly restMs?: number;
  /** No further attempt is made: nothing another one could change. */
  readonly dead?: boolean;
  readonly cause?: unknown;
}

export class JobError extends Error {
  readonly restMs: number | undefined;
  readonly dead: boolean;

  constructor(message: string, { restMs, dead = false, cause }: JobErrorOptions = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "JobError";
    this.restMs = restMs;
    this.dead = dead;
  }
}
