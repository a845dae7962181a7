/** What the rooms above are given of a statement that ran. */

import type { Result } from "../exec/plan.ts";
import { jsonString } from "../value/json.ts";
import type { Outcome } from "./contract.ts";
import type { KeptOutcome } from "./idempotency.ts";

export class StatementOutcome implements Outcome {
  readonly kind: Outcome["kind"];
  readonly count: number;
  readonly wrote: number;
  readonly isWrite: boolean;
  readonly seq: number;
  readonly replayed: boolean;
  readonly text: string;

  constructor(outcome: KeptOutcome, seq: number, replayed: boolean) {
    this.kind = outcome.kind;
    this.text = outcome.text;
    this.count = outcome.count;
    this.wrote = outcome.wrote;
    this.isWrite = outcome.isWrite;
    this.seq = seq;
    this.replayed = replayed;
  }

  static of(result: Result, isWrite: boolean, seq: number): StatementOutcome {
    const { kind, text, count, change } = result;
    return new StatementOutcome({ kind, text, count, wrote: change.length, isWrite }, seq, false);
  }

  get isRead(): boolean {
    return !this.isWrite;
  }

  get body(): string {
    if (this.kind === "rows" || this.kind === "schemas") return this.text;
    return this.batchBody;
  }

  get batchBody(): string {
    if (this.kind === "rows" || this.kind === "schemas") return `{"rows":${this.text}}`;
    if (this.kind === "affected") return `{"affected":${this.count}}`;
    return `{"message":${jsonString(this.text)}}`;
  }
}
