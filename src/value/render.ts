/** Cells as json text: the answers' side of the values. */

import { doubleJson, jsonString } from "./json.ts";
import { formatTime } from "./time.ts";
import type { Cell, FieldType, Point } from "./value.ts";

/**
 * Compact json text of a cell. A timestamp is ISO text, a geo `[lon,lat]`, bytes a list of numbers; a json cell is its own
 * text.
 */
export function cellJson(type: FieldType, cell: Cell): string {
  if (cell === null) return "null";
  switch (type.kind) {
    case "text":
      return jsonString(cell as string);
    case "json":
      return cell as string;
    case "int":
    case "bool":
      return String(cell);
    case "timestamp":
      return `"${formatTime(cell as number)}"`;
    case "float":
      return doubleJson(cell as number);
    case "geo":
      return `[${doubleJson((cell as Point).lon)},${doubleJson((cell as Point).lat)}]`;
    case "bytes":
      return `[${Array.prototype.join.call(cell as Uint8Array, ",")}]`;
    case "list": {
      const cells = cell as readonly Cell[];
      let list = "[";
      for (let i = 0; i < cells.length; i++) list += (i === 0 ? "" : ",") + cellJson(type.of, cells[i]!);
      return `${list}]`;
    }
  }
}
