/** Values of a query string: all text, read by the type of the field they are asked of. */

import { TIME_MAX_MS, TIME_MIN_MS } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import { readJson } from "../value/json.ts";
import { parseTime } from "../value/time.ts";
import { cellToValue, fitCell, typeText } from "../value/types.ts";
import { type FieldType, Json, Time, type Value } from "../value/value.ts";

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const WHOLE = /^-?\d+$/;

/** `where` is the path asked of, for the words of a refusal (`bad_value`). */
export function typedValue(type: FieldType, text: string, where: string): Value {
  switch (type.kind) {
    case "int":
    case "float":
      if (!NUMBER.test(text)) throw misfit(type, text, where, "a number");
      return readJson(text);
    case "bool":
      if (text !== "true" && text !== "false") throw misfit(type, text, where, "true or false");
      return text === "true";
    case "timestamp":
      return timeValue(type, text, where);
    case "text":
    case "bytes":
      return text;
    case "json":
      return jsonOrText(text);
    case "list":
    case "geo": {
      const value = jsonOrText(text);
      if (!(value instanceof Json) || !value.isList) throw misfit(type, text, where, "a json list");
      return type.kind === "list" ? value : cellToValue(type, fitCell(type, value, where));
    }
  }
}

/** ISO text, or epoch milliseconds. */
function timeValue(type: FieldType, text: string, where: string): Time {
  const ms = WHOLE.test(text) ? Number(text) : parseTime(text);
  if (ms === undefined || ms < TIME_MIN_MS || ms > TIME_MAX_MS) {
    throw misfit(type, text, where, "a time, as ISO text or epoch milliseconds");
  }
  return new Time(ms);
}

/** What reads as json is that value; all else is a text. */
function jsonOrText(text: string): Value {
  try {
    return readJson(text);
  } catch (error) {
    if (error instanceof Refusal && error.code === "bad_json") return text;
    throw error;
  }
}

/** The items of `(a,b,"c,d")`. An item in double quotes may hold commas, and after a backslash any character. */
export function listOf(text: string, where: string): string[] {
  const refuse = (): never => {
    throw new Refusal("bad_value", `${where}=in.${text}: in takes a list in brackets, in.(a,b)`);
  };
  if (!text.startsWith("(") || !text.endsWith(")") || text.length < 2) return refuse();
  const inner = text.slice(1, -1);
  const items: string[] = [];
  if (inner === "") return items;
  let at = 0;
  for (;;) {
    if (inner[at] === '"') {
      let item = "";
      for (at++; at < inner.length && inner[at] !== '"'; at++) {
        if (inner[at] === "\\") at++;
        item += inner[at] ?? "";
      }
      if (inner[at] !== '"') return refuse();
      at++;
      items.push(item);
    } else {
      const comma = inner.indexOf(",", at);
      const end = comma === -1 ? inner.length : comma;
      items.push(inner.slice(at, end));
      at = end;
    }
    if (at === inner.length) return items;
    if (inner[at] !== ",") return refuse();
    at++;
  }
}

function misfit(type: FieldType, text: string, where: string, what: string): Refusal {
  return new Refusal("bad_value", `${where} is ${typeText(type)}: ${JSON.stringify(text)} is not ${what}`);
}
