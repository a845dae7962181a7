/** What the rooms above are given of a statement that ran. */

import type { Result } from "../exec/plan.ts";
import { jsonString } from "../value/json.ts";
import type { Outcome } from "./contract.ts";

export class StatementOutcome implements Outcome {
  readonly kind: Outcome["kind"];
  readonly count: number;
  readonly wrote: number;
  readonly isWrite: boolean;
  readonly seq: number;
  readonly #text: string;

  constructor(result: Result, isWrite: boolean, seq: number) {
    this.kind = result.kind;
    this.#text = result.text;
    this.count = result.count;
    this.wrote = result.change.length;
    this.isWrite = isWrite;
    this.seq = seq;
  }

  get isRead(): boolean {
    return !this.isWrite;
  }

  get body(): string {
    if (this.kind === "rows" || this.kind === "schemas") return this.#text;
    return this.batchBody;
  }

  get batchBody(): string {
    if (this.kind === "rows") return `{"rows":${this.#text}}`;
    if (this.kind === "schemas") return `{"collections":${this.#text}}`;
    if (this.kind === "affected") return `{"affected":${this.count}}`;
    return `{"message":${jsonString(this.#text)}}`;
  }
}
