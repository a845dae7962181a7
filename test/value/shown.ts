/** A value on one line, with its kind, for the name of a test. */

import { valueToJson } from "../../src/value/json.ts";
import { kindWords, type Value } from "../../src/value/value.ts";

export function shown(value: Value): string {
  return value === null ? "null" : `${kindWords(value)} ${valueToJson(value)}`;
}
