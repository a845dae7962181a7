/** Whether a cell is one its field's type can hold: asked of rows at rest, where anything else is a defect. */

import { INT_MAX, INT_MIN, TIME_MAX_MS, TIME_MIN_MS } from "../base/limits.ts";
import { type Cell, type FieldType, Point } from "../value/value.ts";

export function cellFits(type: FieldType, cell: Cell): boolean {
  if (cell === null) return true;
  switch (type.kind) {
    case "bool":
      return typeof cell === "boolean";
    case "int":
      if (typeof cell === "bigint") return cell >= INT_MIN && cell <= INT_MAX && !Number.isSafeInteger(Number(cell));
      return Number.isSafeInteger(cell);
    case "float":
      return Number.isFinite(cell);
    case "text":
    case "json":
      return typeof cell === "string";
    case "timestamp":
      return Number.isInteger(cell) && (cell as number) >= TIME_MIN_MS && (cell as number) <= TIME_MAX_MS;
    case "bytes":
      return cell instanceof Uint8Array;
    case "geo":
      return cell instanceof Point && Math.abs(cell.lon) <= 180 && Math.abs(cell.lat) <= 90;
    case "list": {
      if (!Array.isArray(cell)) return false;
      const of = type.of;
      // As deep as the type, which is bounded.
      return cell.every((item) => cellFits(of, item as Cell));
    }
  }
}
