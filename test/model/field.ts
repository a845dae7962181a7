/** What the fields of the model take: a value that does not fit is wrong, none is changed on the way but by the rules. */

import { parseTime } from "../../src/value/time.ts";
import type { FieldType } from "../../src/value/value.ts";
import {
  depthOf,
  float,
  INT_LEAST,
  INT_MOST,
  inTime,
  int,
  isoOf,
  NULL,
  type Plain,
  text,
  time,
  Wrong,
} from "./plain.ts";

function misfit(type: FieldType, value: Plain): never {
  throw new Wrong(400, `${value.kind} into ${type.kind}`);
}

export function fit(type: FieldType, value: Plain): Plain {
  if (value.kind === "null") return NULL;
  switch (type.kind) {
    case "bool":
    case "text":
      return value.kind === type.kind ? value : misfit(type, value);
    case "int":
      if (value.kind === "int") return value;
      return value.kind === "float" ? wholeOf(type, value) : misfit(type, value);
    case "float":
      return fitFloat(type, value);
    case "bytes":
      return fitBytes(type, value);
    case "timestamp":
      return fitTime(type, value);
    case "json": {
      const json = asJson(type, value);
      if (depthOf(json) > 64) throw new Wrong(400, "nested past 64");
      return json;
    }
    case "geo":
      return fitPoint(type, value);
    case "list": {
      if (value.kind !== "list") return misfit(type, value);
      return { kind: "list", items: value.items.map((item) => fit(type.of, item)) };
    }
  }
}

/** By the digits where there are some, as the double may have lost what they say. */
function wholeOf(type: FieldType, value: Plain & { readonly kind: "float" }): Plain {
  let whole: bigint;
  if (value.digits === null) {
    if (!Number.isInteger(value.n)) return misfit(type, value);
    whole = BigInt(value.n);
  } else {
    const [mantissa = "", power = "0"] = value.digits.toLowerCase().split("e");
    const [before = "", after = ""] = mantissa.split(".");
    const shift = Number(power) - after.length;
    const digits = BigInt(before + after);
    if (shift >= 0) whole = digits * 10n ** BigInt(shift);
    else {
      const scale = 10n ** BigInt(-shift);
      if (digits % scale !== 0n) return misfit(type, value);
      whole = digits / scale;
    }
  }
  return whole >= INT_LEAST && whole <= INT_MOST ? int(whole) : misfit(type, value);
}

function fitFloat(type: FieldType, value: Plain): Plain {
  if (value.kind === "int") return BigInt(Number(value.n)) === value.n ? float(Number(value.n)) : misfit(type, value);
  if (value.kind !== "float") return misfit(type, value);
  const isWhole = value.digits !== null && /^-?\d+$/.test(value.digits);
  if (isWhole && BigInt(value.digits as string) !== BigInt(value.n)) return misfit(type, value);
  return float(value.n);
}

function fitBytes(type: FieldType, value: Plain): Plain {
  if (value.kind === "bytes") return value;
  if (value.kind === "text") {
    if (!value.text.isWellFormed()) return misfit(type, value);
    return { kind: "bytes", bytes: [...new TextEncoder().encode(value.text)] };
  }
  if (value.kind !== "list") return misfit(type, value);
  const bytes = value.items.map((item) => {
    const n = item.kind === "int" ? Number(item.n) : item.kind === "float" ? item.n : -1;
    return Number.isInteger(n) && n >= 0 && n <= 255 ? Math.abs(n) : misfit(type, item);
  });
  return { kind: "bytes", bytes };
}

function fitTime(type: FieldType, value: Plain): Plain {
  if (value.kind === "time") return value;
  if (value.kind === "int") return inTime(value.n) ? time(Number(value.n)) : misfit(type, value);
  const ms = value.kind === "text" ? parseTime(value.text) : undefined;
  return ms === undefined ? misfit(type, value) : time(ms);
}

/** A value as json can hold it: times become text, points lists; bytes have no json. */
export function asJson(type: FieldType, value: Plain): Plain {
  switch (value.kind) {
    case "time":
      return text(isoOf(value.ms));
    case "bytes":
      return misfit(type, value);
    case "point":
      return { kind: "list", items: [float(value.lon), float(value.lat)] };
    case "list":
      return { kind: "list", items: value.items.map((item) => asJson(type, item)) };
    case "object":
      return { kind: "object", members: value.members.map(([key, member]) => [key, asJson(type, member)] as const) };
    default:
      return value;
  }
}

function fitPoint(type: FieldType, value: Plain): Plain {
  if (value.kind === "point") return value;
  if (value.kind !== "list" || value.items.length !== 2) return misfit(type, value);
  const [lon, lat] = value.items.map((item) => (item.kind === "int" || item.kind === "float" ? Number(item.n) : NaN));
  if (!(Math.abs(lon!) <= 180 && Math.abs(lat!) <= 90)) return misfit(type, value);
  return { kind: "point", lon: lon!, lat: lat! };
}
