/**
 * Times and durations: text to epoch milliseconds and back, and the start of the interval a time lies in. UTC and the
 * proleptic Gregorian calendar, years 0000 to 9999. Reads no clock.
 */

import { assert } from "../base/assert.ts";
import { INT_MAX, INT_MIN, TIME_MAX_MS, TIME_MIN_MS } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import { Float, intOf, kindWords, Time, type Value } from "./value.ts";

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
/** 1969-12-29, the Monday of the week the epoch lies in. */
const MONDAY_MS = -3 * DAY_MS;

/**
 * A fixed interval (`ms` long, its boundaries counted from `originMs`: the epoch, for weeks a Monday), or one by the
 * calendar.
 */
export type Interval = { readonly ms: number; readonly originMs: number } | { readonly months: number };

/** Days from the epoch to a date; the year is counted from March so that the leap day ends it. */
function daysFromDate(year: number, month: number, day: number): number {
  const y = month > 2 ? year : year - 1;
  const era = Math.floor(y / 400);
  const yearOfEra = y - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  return (
    era * 146_097 + yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear - 719_468
  );
}

/** The reverse: [year, month 1..12, day 1..31] packed as year * 512 + month * 32 + day. */
function packedDate(days: number): number {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1_460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1;
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  return year * 512 + month * 32 + day;
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** The `count` decimal digits at `at`, or NaN. Past the end of the text counts as no digit. */
function digits(text: string, at: number, count: number): number {
  let n = 0;
  for (let i = at; i < at + count; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    n = n * 10 + digit;
  }
  return n;
}

/**
 * `YYYY-MM-DD`, or that with `T` or one space, `HH:MM:SS`, an optional fraction (cut to milliseconds) and `Z` or
 * `+HH:MM` / `-HH:MM`. Answers epoch ms, undefined for anything else.
 */
export function parseTime(text: string): number | undefined {
  const length = text.length;
  if (length < 10 || text.charCodeAt(4) !== 45 || text.charCodeAt(7) !== 45) return undefined;
  const year = digits(text, 0, 4);
  const month = digits(text, 5, 2);
  const day = digits(text, 8, 2);
  if (!(year >= 0 && month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month))) return undefined;
  const dateMs = daysFromDate(year, month, day) * DAY_MS;
  if (length === 10) return dateMs;
  const separator = text.charCodeAt(10);
  if (separator !== 84 && separator !== 32) return undefined;
  if (text.charCodeAt(13) !== 58 || text.charCodeAt(16) !== 58) return undefined;
  const hour = digits(text, 11, 2);
  const minute = digits(text, 14, 2);
  const second = digits(text, 17, 2);
  if (!(hour <= 23 && minute <= 59 && second <= 59)) return undefined;
  let at = 19;
  let fractionMs = 0;
  if (text.charCodeAt(at) === 46) {
    const start = ++at;
    let scale = 100;
    for (; at < length; at++) {
      const digit = text.charCodeAt(at) - 48;
      if (!(digit >= 0 && digit <= 9)) break;
      fractionMs += digit * scale;
      scale = scale === 100 ? 10 : scale === 10 ? 1 : 0;
    }
    if (at === start) return undefined;
  }
  const zone = text.charCodeAt(at);
  let offsetMs = 0;
  if (zone === 90) {
    if (length !== at + 1) return undefined;
  } else if (zone === 43 || zone === 45) {
    if (length !== at + 6 || text.charCodeAt(at + 3) !== 58) return undefined;
    const offsetHour = digits(text, at + 1, 2);
    const offsetMinute = digits(text, at + 4, 2);
    if (!(offsetHour <= 23 && offsetMinute <= 59)) return undefined;
    offsetMs = (offsetHour * 60 + offsetMinute) * (zone === 43 ? 60_000 : -60_000);
  } else {
    return undefined;
  }
  const ms = dateMs + hour * 3_600_000 + minute * 60_000 + second * 1_000 + fractionMs - offsetMs;
  return ms >= TIME_MIN_MS && ms <= TIME_MAX_MS ? ms : undefined;
}

const PAIRS: readonly string[] = Array.from({ length: 100 }, (_, n) => String(n).padStart(2, "0"));

/** One claim writes one time into each of its rows, and neighbours in time share their day. */
let lastMs = Number.NaN;
let lastText = "";
let lastDay = Number.NaN;
let lastDayText = "";

/** `YYYY-MM-DDTHH:MM:SSZ`, with `.mmm` before the `Z` only when the milliseconds are not zero. */
export function formatTime(ms: number): string {
  if (ms === lastMs) return lastText;
  assert(ms >= TIME_MIN_MS && ms <= TIME_MAX_MS, "a time lies within the years 0000 to 9999");
  const day = Math.floor(ms / DAY_MS);
  if (day !== lastDay) {
    const packed = packedDate(day);
    const year = packed >> 9;
    lastDayText = `${PAIRS[Math.floor(year / 100)]}${PAIRS[year % 100]}-${PAIRS[(packed >> 5) & 15]}-${PAIRS[packed & 31]}T`;
    lastDay = day;
  }
  const ofDay = ms - day * DAY_MS;
  const second = Math.floor(ofDay / 1000);
  const milli = ofDay - second * 1000;
  const minute = Math.floor(second / 60);
  const hour = Math.floor(minute / 60);
  const time = `${lastDayText + PAIRS[hour]}:${PAIRS[minute - hour * 60]}:${PAIRS[second - minute * 60]}`;
  lastText = milli === 0 ? `${time}Z` : `${time}.${Math.floor(milli / 100)}${PAIRS[milli % 100]}Z`;
  lastMs = ms;
  return lastText;
}

const UNITS = new Map<string, number>([
  ["ms", 1],
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", DAY_MS],
  ["w", WEEK_MS],
]);

/** `15m`, `7d`, `2w`, `3mo`, `1y`. Refuses an unknown form, a zero, and what is longer than all time. */
export function parseDuration(text: string): Interval {
  let at = 0;
  while (at < text.length && text.charCodeAt(at) >= 48 && text.charCodeAt(at) <= 57) at++;
  const unit = text.slice(at);
  const unitMs = UNITS.get(unit);
  const months = unit === "mo" ? 1 : unit === "y" ? 12 : 0;
  if (at === 0 || (unitMs === undefined && months === 0)) {
    throw new Refusal(
      "bad_value",
      `"${text}" is no duration: write a whole number directly followed by ms, s, m, h, d, w, mo or y, such as 15m`,
    );
  }
  const count = Number(text.slice(0, at));
  if (count === 0) throw new Refusal("bad_value", `a duration of zero: "${text}"`);
  if (months > 0) {
    if (count * months > 120_000) throw new Refusal("bad_value", `"${text}" is longer than the years 0000 to 9999`);
    return { months: count * months };
  }
  const ms = count * (unitMs ?? 0);
  if (ms > TIME_MAX_MS - TIME_MIN_MS) {
    throw new Refusal("bad_value", `"${text}" is longer than the years 0000 to 9999`);
  }
  return { ms, originMs: unit === "w" ? MONDAY_MS : 0 };
}

/** Start of the interval that holds `ms`; floors before 1970 too. May lie before the year 0000. */
export function bucket(ms: number, interval: Interval): number {
  if ("ms" in interval) {
    const ofInterval = (ms - interval.originMs) % interval.ms;
    return ms - (ofInterval < 0 ? ofInterval + interval.ms : ofInterval);
  }
  const packed = packedDate(Math.floor(ms / DAY_MS));
  const month = (packed >> 9) * 12 + ((packed >> 5) & 15) - 1;
  const start = month - (month % interval.months);
  return daysFromDate(Math.floor(start / 12), (start % 12) + 1, 1) * DAY_MS;
}

/** `bucket`'s second argument: a duration as text, or a number of milliseconds. Undefined for null. */
export function intervalOf(value: Value): Interval | undefined {
  if (value === null) return undefined;
  if (typeof value === "string") return parseDuration(value);
  if (typeof value === "number" && value > 0) return { ms: value, originMs: 0 };
  if (value instanceof Float && Number.isSafeInteger(value.n) && value.n > 0) return { ms: value.n, originMs: 0 };
  throw new Refusal(
    "bad_value",
    typeof value === "number" || typeof value === "bigint" || value instanceof Float
      ? "an interval of milliseconds is a whole number from 1"
      : `an interval is a duration such as 15m, a text that holds one, or a number of milliseconds, not ${kindWords(value)}`,
  );
}

/** `bucket(t, interval)` of the language: a timestamp gives a timestamp, an int an int, null null. */
export function bucketValue(value: Value, interval: Interval): Value {
  if (value === null) return null;
  if (value instanceof Time) {
    const ms = bucket(value.ms, interval);
    if (ms < TIME_MIN_MS) throw new Refusal("overflow", "the interval starts before the year 0000");
    return new Time(ms);
  }
  if (typeof value !== "number" && typeof value !== "bigint") {
    throw new Refusal("bad_value", `bucket takes a timestamp or an int, not ${kindWords(value)}`);
  }
  if ("ms" in interval) {
    const size = BigInt(interval.ms);
    const n = BigInt(value);
    const ofInterval = (n - BigInt(interval.originMs)) % size;
    const start = n - (ofInterval < 0n ? ofInterval + size : ofInterval);
    if (start < INT_MIN || start > INT_MAX) throw new Refusal("overflow", "the interval starts past 64 bits");
    return intOf(start);
  }
  if (value < TIME_MIN_MS || value > TIME_MAX_MS) {
    throw new Refusal("overflow", "an interval by the calendar takes milliseconds within the years 0000 to 9999");
  }
  return bucket(Number(value), interval);
}
