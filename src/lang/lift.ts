import type { Value } from "../value/value.ts";

export interface Lifted {
  readonly key: string;
  readonly literals: readonly Value[];
}
