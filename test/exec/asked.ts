/** Statements asked of an engine in process, for tests that need no server: a body, or the status of a refusal. */

import { Refusal } from "../../src/base/refusal.ts";
import { readJson } from "../../src/value/json.ts";
import { ANYBODY, RecordedEngine } from "../model/recorded_engine.ts";

export class Asked {
  readonly recorded = new RecordedEngine(Date.parse("2030-01-31T12:00:00Z"));

  constructor(...texts: readonly string[]) {
    for (const text of texts) this.recorded.engine.query(text, [], ANYBODY);
  }

  /** @param params each a json text */
  ask(text: string, ...params: readonly string[]): string | number {
    const values = params.map((json) => readJson(json));
    try {
      return this.recorded.engine.query(text, values, ANYBODY).body;
    } catch (error) {
      if (error instanceof Refusal) return error.status;
      throw error;
    }
  }
}
