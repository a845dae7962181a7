import { describe, expect, test } from "bun:test";
import { TIME_MAX_MS, TIME_MIN_MS } from "../../src/base/limits.ts";
import { bucket, bucketValue, formatTime, intervalOf, parseDuration, parseTime } from "../../src/value/time.ts";
import { Float, Time, type Value } from "../../src/value/value.ts";
import { codeOf } from "../harness/code_of.ts";
import { withRandom } from "../store/random.ts";
import { shown } from "./shown.ts";

/** As Date writes it, without a fraction of zero. */
const written = (ms: number): string => new Date(ms).toISOString().replace(".000Z", "Z");

describe("text to a time", () => {
  const read: readonly (readonly [string, string])[] = [
    ["2027-02-03", "2027-02-03T00:00:00.000Z"],
    ["2028-02-29", "2028-02-29T00:00:00.000Z"],
    ["2000-02-29", "2000-02-29T00:00:00.000Z"],
    ["0000-01-01", "0000-01-01T00:00:00.000Z"],
    ["0000-02-29", "0000-02-29T00:00:00.000Z"],
    ["9999-12-31", "9999-12-31T00:00:00.000Z"],
    ["2027-02-03T04:05:06Z", "2027-02-03T04:05:06.000Z"],
    ["2027-02-03 04:05:06Z", "2027-02-03T04:05:06.000Z"],
    ["2027-02-03T04:05:06.7Z", "2027-02-03T04:05:06.700Z"],
    ["2027-02-03T04:05:06.78Z", "2027-02-03T04:05:06.780Z"],
    ["2027-02-03T04:05:06.789Z", "2027-02-03T04:05:06.789Z"],
    ["2027-02-03T04:05:06.7899999999Z", "2027-02-03T04:05:06.789Z"],
    ["2027-02-03T04:05:06.000000001+00:00", "2027-02-03T04:05:06.000Z"],
    ["1969-12-31T23:59:59.9999Z", "1969-12-31T23:59:59.999Z"],
    ["2027-02-03 07:05:06+03:00", "2027-02-03T04:05:06.000Z"],
    ["2027-02-03T00:05:06-04:30", "2027-02-03T04:35:06.000Z"],
    ["2027-02-03T04:05:06-00:00", "2027-02-03T04:05:06.000Z"],
    ["2027-03-01T00:30:00+01:00", "2027-02-28T23:30:00.000Z"],
    ["2027-12-31T23:30:00-23:59", "2028-01-01T23:29:00.000Z"],
    ["2027-02-03T23:59:59.999Z", "2027-02-03T23:59:59.999Z"],
    ["9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"],
    ["0000-01-01T01:00:00+01:00", "0000-01-01T00:00:00.000Z"],
  ];
  test.each(read)("%s", (text, iso) => {
    expect(parseTime(text)).toBe(Date.parse(iso));
  });

  const none: readonly string[] = [
    "",
    "yesterday",
    "2027",
    "2027-02",
    "2027-2-3",
    "27-02-03",
    "02027-02-03",
    "+002027-02-03",
    "-0001-01-01",
    "2027/02/03",
    "20270203",
    "2026-13-01",
    "2026-00-01",
    "2026-01-00",
    "2026-01-32",
    "2026-04-31",
    "2027-02-29",
    "2100-02-29",
    "2028-02-30",
    " 2027-02-03",
    "2027-02-03 ",
    "2027-02-03T",
    "2027-02-03T04:05",
    "2027-02-03T04:05Z",
    "2027-02-03T04:05:06",
    "2027-02-03  04:05:06Z",
    "2027-02-03t04:05:06Z",
    "2027-02-03T04:05:06z",
    "2027-02-03_04:05:06Z",
    "2027-02-03T24:00:00Z",
    "2027-02-03T23:60:00Z",
    "2027-02-03T23:59:60Z",
    "2027-02-03T4:05:06Z",
    "2027-02-03T04-05-06Z",
    "2027-02-03T04:05:06.Z",
    "2027-02-03T04:05:06,5Z",
    "2027-02-03T04:05:06.5",
    "2027-02-03T04:05:06 Z",
    "2027-02-03T04:05:06Zx",
    "2027-02-03T04:05:06+03",
    "2027-02-03T04:05:06+0300",
    "2027-02-03T04:05:06+3:00",
    "2027-02-03T04:05:06+24:00",
    "2027-02-03T04:05:06+03:60",
    "2027-02-03T04:05:06+03:00Z",
    "0000-01-01T00:00:00+00:01",
    "9999-12-31T23:59:59-00:01",
    "２０２７-02-03",
    "2027-0a-03",
    "2027-02-03T04:05:06.1e3Z",
  ];
  test.each(none)("no time: %j", (text) => {
    expect(parseTime(text)).toBeUndefined();
  });

  test("every day there is, and none that there is not", () => {
    let expected = TIME_MIN_MS;
    const two = (n: number): string => String(n).padStart(2, "0");
    for (let year = 0; year <= 9999; year += year % 400 < 8 || year % 100 > 97 ? 1 : 7) {
      expected = new Date(0).setUTCFullYear(year, 0, 1);
      for (let month = 1; month <= 12; month++) {
        for (let day = 1; day <= 31; day++) {
          const text = `${String(year).padStart(4, "0")}-${two(month)}-${two(day)}`;
          const isDay = new Date(expected).getUTCMonth() + 1 === month && new Date(expected).getUTCDate() === day;
          if (parseTime(text) !== (isDay ? expected : undefined)) throw new Error(text);
          if (isDay && formatTime(expected) !== `${text}T00:00:00Z`) throw new Error(formatTime(expected));
          if (isDay) expected += 86_400_000;
        }
      }
    }
  });
});

describe("a time to text", () => {
  test("edges", () => {
    for (const ms of [
      TIME_MIN_MS,
      TIME_MIN_MS + 1,
      -1,
      0,
      1,
      9,
      10,
      99,
      100,
      999,
      1000,
      TIME_MAX_MS - 1,
      TIME_MAX_MS,
    ]) {
      expect(formatTime(ms)).toBe(written(ms));
      expect(parseTime(formatTime(ms))).toBe(ms);
    }
  });

  test("any time, and back; asked twice, the same", () => {
    withRandom((random) => {
      let ms = 0;
      for (let i = 0; i < 50_000; i++) {
        // Often near the last one: what is kept from it must not leak into the next.
        const step = random.pick([0, 1, 999, 1000, 60_000, 86_400_000, Number.NaN]);
        ms = Number.isNaN(step) ? TIME_MIN_MS + Math.floor(random.next() * (TIME_MAX_MS - TIME_MIN_MS)) : ms + step;
        ms = Math.min(ms, TIME_MAX_MS);
        const text = formatTime(ms);
        if (text !== written(ms) || formatTime(ms) !== text || parseTime(text) !== ms)
          throw new Error(`${ms}: ${text}`);
      }
    });
  });

  test("outside the years 0000 to 9999 there is no text", () => {
    expect(() => formatTime(TIME_MIN_MS - 1)).toThrow();
    expect(() => formatTime(TIME_MAX_MS + 1)).toThrow();
    expect(() => formatTime(Number.NaN)).toThrow();
  });
});

describe("durations", () => {
  const fixed: readonly (readonly [string, number])[] = [
    ["1ms", 1],
    ["250ms", 250],
    ["10s", 10_000],
    ["15m", 900_000],
    ["1h", 3_600_000],
    ["7d", 604_800_000],
    ["007d", 604_800_000],
  ];
  test.each(fixed)("%s", (text, ms) => {
    expect(parseDuration(text)).toEqual({ ms, originMs: 0 });
  });
  test("weeks count from a Monday, months and years by the calendar", () => {
    expect(parseDuration("2w")).toEqual({ ms: 14 * 86_400_000, originMs: Date.UTC(1969, 11, 29) });
    expect(parseDuration("3mo")).toEqual({ months: 3 });
    expect(parseDuration("2y")).toEqual({ months: 24 });
  });
  const refused = [
    "",
    "15",
    "m",
    "15 m",
    "1.5h",
    "-1h",
    "+1h",
    "15M",
    "15min",
    "1hour",
    "1h30m",
    "0s",
    "0mo",
    "00d",
    "1_0s",
    "1e3s",
    "９s",
    "99999999999999999999d",
    `${"9".repeat(400)}ms`,
    "10001y",
  ];
  test.each(refused)("refused: %j", (text) => {
    expect(codeOf(() => parseDuration(text))).toBe("bad_value");
  });

  const intervals: readonly (readonly [Value, unknown])[] = [
    ["15m", { ms: 900_000, originMs: 0 }],
    [3_600_000, { ms: 3_600_000, originMs: 0 }],
    [new Float(1000, "1e3"), { ms: 1000, originMs: 0 }],
    [null, undefined],
  ];
  test.each(intervals.map((row) => [shown(row[0]), ...row] as const))("an interval from %s", (_, value, interval) => {
    expect(intervalOf(value)).toEqual(interval as undefined);
  });
  const noIntervals: readonly Value[] = [
    0,
    -5,
    new Float(0.5),
    new Float(-1),
    2n ** 60n,
    "x",
    "0s",
    true,
    new Time(5),
    [1],
  ];
  test.each(noIntervals.map((value) => [shown(value), value] as const))("no interval: %s", (_, value) => {
    expect(codeOf(() => intervalOf(value))).toBe("bad_value");
  });
});

describe("buckets", () => {
  const rows: readonly (readonly [string, string, string])[] = [
    ["2027-07-08T21:52:19.640Z", "1ms", "2027-07-08T21:52:19.640Z"],
    ["2027-07-08T21:52:19.640Z", "10s", "2027-07-08T21:52:10Z"],
    ["2027-07-08T21:52:19.640Z", "15m", "2027-07-08T21:45:00Z"],
    ["2027-07-08T21:52:19.640Z", "1h", "2027-07-08T21:00:00Z"],
    ["2027-07-08T21:52:19.640Z", "1d", "2027-07-08T00:00:00Z"],
    ["2027-07-08T21:45:00Z", "15m", "2027-07-08T21:45:00Z"],
    ["2027-08-20T06:07:08Z", "1w", "2027-08-16T00:00:00Z"],
    ["2027-08-16T00:00:00Z", "1w", "2027-08-16T00:00:00Z"],
    ["2027-08-15T23:59:59.999Z", "1w", "2027-08-09T00:00:00Z"],
    ["1970-01-01T00:00:00Z", "1w", "1969-12-29T00:00:00Z"],
    ["1970-01-01T00:00:00Z", "2w", "1969-12-29T00:00:00Z"],
    ["2027-08-20T06:07:08Z", "1mo", "2027-08-01T00:00:00Z"],
    ["2027-08-20T06:07:08Z", "3mo", "2027-07-01T00:00:00Z"],
    ["2027-08-20T06:07:08Z", "1y", "2027-01-01T00:00:00Z"],
    ["2027-08-20T06:07:08Z", "10y", "2020-01-01T00:00:00Z"],
    ["1969-12-31T23:59:59.999Z", "1h", "1969-12-31T23:00:00Z"],
    ["1969-12-31T23:59:59.999Z", "1d", "1969-12-31T00:00:00Z"],
    ["1969-11-15T00:00:00Z", "3mo", "1969-10-01T00:00:00Z"],
    ["0000-03-01T00:00:00Z", "1y", "0000-01-01T00:00:00Z"],
    ["9999-12-31T23:59:59.999Z", "1y", "9999-01-01T00:00:00Z"],
  ];
  test.each(rows)("%s by %s is %s", (time, duration, start) => {
    const ms = parseTime(time)!;
    expect(bucket(ms, parseDuration(duration))).toBe(parseTime(start)!);
    expect(bucketValue(new Time(ms), parseDuration(duration))).toEqual(new Time(parseTime(start)!));
    expect(bucketValue(ms, parseDuration(duration))).toBe(parseTime(start)!);
  });

  test("the start is at or before the time, the next start behind it, and a start its own", () => {
    withRandom((random) => {
      for (let i = 0; i < 20_000; i++) {
        const ms = TIME_MIN_MS + Math.floor(random.next() * (TIME_MAX_MS - TIME_MIN_MS));
        const duration = `${1 + random.below(40)}${random.pick(["ms", "s", "m", "h", "d", "w", "mo", "y"])}`;
        const interval = parseDuration(duration);
        const start = bucket(ms, interval);
        const date = new Date(start);
        const end =
          "ms" in interval ? start + interval.ms : new Date(start).setUTCMonth(date.getUTCMonth() + interval.months);
        const isMonday = !duration.endsWith("w") || date.getUTCDay() === 1;
        const isFirst = "ms" in interval || (date.getUTCDate() === 1 && start % 86_400_000 === 0);
        if (!(start <= ms && ms < end && bucket(start, interval) === start && isMonday && isFirst)) {
          throw new Error(`${ms} by ${duration} is ${start}`);
        }
      }
    });
  });

  test("of an int an int, past 2^53 too; of null null; of anything else a refusal", () => {
    const hour = parseDuration("1h");
    expect(bucketValue(null, hour)).toBeNull();
    expect(bucketValue(-1, hour)).toBe(-3_600_000);
    expect(bucketValue(9007199254740993n, parseDuration("1ms"))).toBe(9007199254740993n);
    expect(bucketValue(2n ** 62n, { ms: 1000, originMs: 0 })).toBe(2n ** 62n - (2n ** 62n % 1000n));
    expect(codeOf(() => bucketValue(-(2n ** 63n), hour))).toBe("overflow");
    expect(codeOf(() => bucketValue(2n ** 62n, parseDuration("1mo")))).toBe("overflow");
    expect(codeOf(() => bucketValue(new Time(TIME_MIN_MS), parseDuration("1w")))).toBe("overflow");
    for (const value of ["2027-01-01", true, new Float(1), [1], new Uint8Array()]) {
      expect(codeOf(() => bucketValue(value, hour))).toBe("bad_value");
    }
  });
});
