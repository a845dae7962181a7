/** The id a document names. */

import { ID_MAX } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import { fitCell } from "../value/types.ts";
import type { FieldType, Value } from "../value/value.ts";

const INT: FieldType = { kind: "int" };

/** Null: the next one is given. */
export function idOf(value: Value): number | null {
  const id = fitCell(INT, value, "`id`");
  if (id === null) return null;
  if (typeof id === "number" && id >= 0 && id < ID_MAX) return id;
  throw new Refusal("bad_value", `an id is a whole number from 0 to ${ID_MAX - 1}, and ${String(id)} is not`);
}
