import { heapStats } from "bun:jsc";
import { describe, expect, test } from "bun:test";
import { JSON_DEPTH, TIME_MAX_MS, TIME_MIN_MS } from "../../src/base/limits.ts";
import { Refusal, type RefusalCode } from "../../src/base/refusal.ts";
import { jsonToValue, parseMembers, readJson } from "../../src/value/json.ts";
import { compareValues } from "../../src/value/order.ts";
import { cellJson } from "../../src/value/render.ts";
import { cellToValue, compareCells, fitCell, typeText } from "../../src/value/types.ts";
import {
  type Cell,
  type FieldType,
  Float,
  Json,
  Point,
  type ScalarKind,
  Time,
  type Value,
} from "../../src/value/value.ts";
import { withRandom } from "../store/random.ts";
import { randomText } from "./chance_json.ts";
import { shown } from "./shown.ts";

const scalar = (kind: ScalarKind): FieldType => ({ kind });
const listOf = (of: FieldType): FieldType => ({ kind: "list", of });
const INTS = listOf(scalar("int"));
const FLOATS = listOf(scalar("float"));
const TEXTS = listOf(scalar("text"));

type Outcome = { readonly cell: Cell } | { readonly refused: RefusalCode };

function outcome(type: FieldType, value: Value): Outcome {
  try {
    return { cell: fitCell(type, value, "f") };
  } catch (error) {
    if (error instanceof Refusal) {
      expect(error.message.startsWith("f")).toBe(true);
      return { refused: error.code };
    }
    throw error;
  }
}

const REFUSED: Outcome = { refused: "bad_value" };
const kept = (cell: Cell): Outcome => ({ cell });

describe("what a field takes", () => {
  const rows: readonly (readonly [FieldType, Value, Outcome])[] = [
    [scalar("bool"), true, kept(true)],
    [scalar("bool"), false, kept(false)],
    [scalar("bool"), 1, REFUSED],
    [scalar("bool"), 0, REFUSED],
    [scalar("bool"), "true", REFUSED],

    [scalar("int"), 5, kept(5)],
    [scalar("int"), -0 + 0, kept(0)],
    [scalar("int"), 9007199254740993n, kept(9007199254740993n)],
    [scalar("int"), 2n ** 63n - 1n, kept(2n ** 63n - 1n)],
    [scalar("int"), -(2n ** 63n), kept(-(2n ** 63n))],
    [scalar("int"), new Float(2), kept(2)],
    [scalar("int"), new Float(2, "2.0"), kept(2)],
    [scalar("int"), new Float(-0), kept(0)],
    [scalar("int"), new Float(-0, "-0"), kept(0)],
    [scalar("int"), new Float(100, "1E2"), kept(100)],
    [scalar("int"), new Float(150, "1.50e2"), kept(150)],
    [scalar("int"), new Float(-120, "-12.0e+1"), kept(-120)],
    [scalar("int"), new Float(0, "0.000e5"), kept(0)],
    [scalar("int"), new Float(2 ** 60), kept(2n ** 60n)],
    [scalar("int"), new Float(9007199254740992, "9007199254740993.0"), kept(9007199254740993n)],
    [scalar("int"), new Float(2 ** 63, "9223372036854775807.0"), kept(2n ** 63n - 1n)],
    [scalar("int"), new Float(1, "1.00000000000000000001"), REFUSED],
    [scalar("int"), new Float(0, "1e-400"), REFUSED],
    [scalar("int"), new Float(2.5), REFUSED],
    [scalar("int"), new Float(2 ** 63), REFUSED],
    [scalar("int"), new Float(2 ** 63, "9223372036854775808"), REFUSED],
    [scalar("int"), new Float(-(2 ** 63)), kept(-(2n ** 63n))],
    [scalar("int"), new Float(1e300), REFUSED],
    [scalar("int"), new Float(1e300, "1e300"), REFUSED],
    [scalar("int"), "5", REFUSED],
    [scalar("int"), true, REFUSED],
    [scalar("int"), new Json('{"a":1}'), REFUSED],
    [scalar("int"), new Time(5), REFUSED],

    [scalar("float"), new Float(2.5), kept(2.5)],
    [scalar("float"), new Float(1.5, "1.50"), kept(1.5)],
    [scalar("float"), new Float(-0, "-0"), kept(-0)],
    [scalar("float"), 5, kept(5)],
    [scalar("float"), 9007199254740992n, kept(9007199254740992)],
    [scalar("float"), 9007199254740993n, REFUSED],
    [scalar("float"), 2n ** 63n - 1n, REFUSED],
    [scalar("float"), -(2n ** 63n), kept(-(2 ** 63))],
    [scalar("float"), new Float(2 ** 63, "9223372036854775808"), kept(2 ** 63)],
    [scalar("float"), new Float(Number("123456789012345678901234567890"), "123456789012345678901234567890"), REFUSED],
    [scalar("float"), new Float(1e29, "1e29"), kept(1e29)],
    [scalar("float"), new Float(Number.POSITIVE_INFINITY), REFUSED],
    [scalar("float"), "2.5", REFUSED],
    [scalar("float"), true, REFUSED],

    [scalar("text"), "", kept("")],
    [scalar("text"), "çağ 😀", kept("çağ 😀")],
    [scalar("text"), "\ud800\0", kept("\ud800\0")],
    [scalar("text"), 5, REFUSED],
    [scalar("text"), true, REFUSED],
    [scalar("text"), new Json("{}"), REFUSED],
    [scalar("text"), new Time(0), REFUSED],

    [scalar("bytes"), "é", kept(new Uint8Array([0xc3, 0xa9]))],
    [scalar("bytes"), "", kept(new Uint8Array())],
    [scalar("bytes"), "\ud800", REFUSED],
    [scalar("bytes"), new Uint8Array([7]), kept(new Uint8Array([7]))],
    [scalar("bytes"), [0, 255], kept(new Uint8Array([0, 255]))],
    [scalar("bytes"), new Json("[1,2.0]"), kept(new Uint8Array([1, 2]))],
    [scalar("bytes"), [], kept(new Uint8Array())],
    [scalar("bytes"), [256], REFUSED],
    [scalar("bytes"), [-1], REFUSED],
    [scalar("bytes"), [new Float(1.5)], REFUSED],
    [scalar("bytes"), ["a"], REFUSED],
    [scalar("bytes"), [null], REFUSED],
    [scalar("bytes"), 5, REFUSED],
    [scalar("bytes"), new Json("{}"), REFUSED],

    [scalar("timestamp"), new Time(5), kept(5)],
    [scalar("timestamp"), 1801627506000, kept(1801627506000)],
    [scalar("timestamp"), 0, kept(0)],
    [scalar("timestamp"), "2027-02-03T04:05:06Z", kept(1801627506000)],
    [scalar("timestamp"), "2027-02-03 07:05:06+03:00", kept(1801627506000)],
    [scalar("timestamp"), TIME_MIN_MS, kept(TIME_MIN_MS)],
    [scalar("timestamp"), TIME_MAX_MS, kept(TIME_MAX_MS)],
    [scalar("timestamp"), TIME_MIN_MS - 1, REFUSED],
    [scalar("timestamp"), TIME_MAX_MS + 1, REFUSED],
    [scalar("timestamp"), 2n ** 60n, REFUSED],
    [scalar("timestamp"), "yesterday", REFUSED],
    [scalar("timestamp"), "2026-13-01", REFUSED],
    [scalar("timestamp"), "1801627506000", REFUSED],
    [scalar("timestamp"), new Float(1.5), REFUSED],
    [scalar("timestamp"), true, REFUSED],

    [INTS, [1, 2, 3], kept([1, 2, 3])],
    [INTS, new Json("[4,5.0,9007199254740993]"), kept([4, 5, 9007199254740993n])],
    [INTS, [], kept([])],
    [INTS, [1, null], kept([1, null])],
    [INTS, [new Float(1.5)], REFUSED],
    [INTS, new Json("[1.5]"), REFUSED],
    [INTS, ["a"], REFUSED],
    [INTS, 1, REFUSED],
    [INTS, "[1]", REFUSED],
    [INTS, new Json("{}"), REFUSED],
    [FLOATS, [1, new Float(2.5)], kept([1, 2.5])],
    [FLOATS, new Json("[1,2.5]"), kept([1, 2.5])],
    [FLOATS, [9007199254740993n], REFUSED],
    [TEXTS, new Json('["a","\\u0062"]'), kept(["a", "b"])],
    [TEXTS, ["a", 1], REFUSED],
    [listOf(scalar("timestamp")), ["2027-02-03", 5], kept([Date.UTC(2027, 1, 3), 5])],
    [listOf(INTS), new Json("[[1],[],[2,3]]"), kept([[1], [], [2, 3]])],
    [listOf(INTS), [[1], 2], REFUSED],

    [scalar("json"), true, kept("true")],
    [scalar("json"), 12345678901, kept("12345678901")],
    [scalar("json"), 2n ** 63n - 1n, kept("9223372036854775807")],
    [scalar("json"), new Float(19.99), kept("19.99")],
    [scalar("json"), new Float(1.5, "1.50"), kept("1.50")],
    [scalar("json"), new Float(-0, "-0"), kept("-0")],
    [scalar("json"), 'a"b', kept('"a\\"b"')],
    [scalar("json"), "\ud800", kept('"\\ud800"')],
    [scalar("json"), new Json('{"b":1,"10":2,"2":1E2}'), kept('{"b":1,"10":2,"2":1E2}')],
    [scalar("json"), [1, "x", null, [new Float(2.5)], new Json("{}")], kept('[1,"x",null,[2.5],{}]')],
    [scalar("json"), new Time(0), kept('"1970-01-01T00:00:00Z"')],
    [scalar("json"), [new Time(1)], kept('["1970-01-01T00:00:00.001Z"]')],
    [scalar("json"), new Point(1.5, 2), kept("[1.5,2]")],
    [scalar("json"), new Uint8Array([1]), REFUSED],
    [scalar("json"), [[new Uint8Array([1])]], REFUSED],
    [scalar("json"), new Float(Number.NaN), REFUSED],
    [scalar("json"), [new Float(Number.NEGATIVE_INFINITY)], REFUSED],
    [scalar("json"), new Json("[".repeat(JSON_DEPTH) + "]".repeat(JSON_DEPTH)), kept("[".repeat(64) + "]".repeat(64))],
    [scalar("json"), new Json("[".repeat(JSON_DEPTH + 1) + "]".repeat(JSON_DEPTH + 1)), { refused: "too_deep" }],
    [scalar("json"), [new Json("[".repeat(JSON_DEPTH) + "]".repeat(JSON_DEPTH))], { refused: "too_deep" }],

    [scalar("geo"), [13, new Float(38.115556)], kept(new Point(13, 38.115556))],
    [scalar("geo"), new Json("[13.361389,38.115556]"), kept(new Point(13.361389, 38.115556))],
    [scalar("geo"), new Point(1, 2), kept(new Point(1, 2))],
    [scalar("geo"), [180, 90], kept(new Point(180, 90))],
    [scalar("geo"), [-180, -90], kept(new Point(-180, -90))],
    [scalar("geo"), [new Float(180.0000001), 0], REFUSED],
    [scalar("geo"), [0, new Float(-90.0000001)], REFUSED],
    [scalar("geo"), [10, 99], REFUSED],
    [scalar("geo"), [1], REFUSED],
    [scalar("geo"), [1, 2, 3], REFUSED],
    [scalar("geo"), ["1", "2"], REFUSED],
    [scalar("geo"), [null, 2], REFUSED],
    [scalar("geo"), [2n ** 60n, 0], REFUSED],
    [scalar("geo"), "1,2", REFUSED],
    [scalar("geo"), new Json('{"lon":1,"lat":2}'), REFUSED],
  ];
  test.each(rows.map((row) => [typeText(row[0]), shown(row[1]).slice(0, 60), ...row] as const))(
    "%s of %s",
    (...row) => {
      const [, , type, value, result] = row;
      expect(outcome(type, value)).toEqual(result);
    },
  );

  test("null fits every type", () => {
    for (const kind of ["bool", "int", "float", "text", "bytes", "timestamp", "json", "geo"] as const) {
      expect(fitCell(scalar(kind), null, "f")).toBeNull();
    }
    expect(fitCell(INTS, null, "f")).toBeNull();
  });

  test("a list of lists without end is refused", () => {
    let list: Value = [];
    for (let i = 0; i < 100_000; i++) list = [list];
    expect(outcome(scalar("json"), list)).toEqual({ refused: "too_deep" });
  });

  test("digits without end are judged in passing", () => {
    const zeros = "0".repeat(200_000);
    for (const [text, result] of [
      [`1.${zeros}1`, REFUSED],
      [`1.${zeros}`, kept(1)],
      [`0.${zeros}1e200001`, kept(1)],
      [`0.${zeros}1e200000`, REFUSED],
    ] as const) {
      expect(outcome(scalar("int"), readJson(text))).toEqual(result);
    }
  });

  test("the words name the field, the element, the type and what came", () => {
    const words = (type: FieldType, value: Value): string => {
      try {
        fitCell(type, value, "jobs.n");
      } catch (error) {
        return (error as Refusal).message;
      }
      return "";
    };
    expect(words(scalar("int"), "5")).toBe("jobs.n is int and takes an int, not a text");
    expect(words(scalar("int"), new Float(2.5))).toBe("jobs.n is int and takes a whole number, not 2.5");
    expect(words(INTS, [1, "x"])).toBe("jobs.n[1] is int and takes an int, not a text");
    expect(words(listOf(INTS), [[1], [2, true]])).toBe("jobs.n[1][1] is int and takes an int, not a bool");
    expect(words(scalar("timestamp"), "x".repeat(10_000)).length).toBeLessThan(250);
    expect(words(scalar("float"), 9007199254740993n)).toBe(
      "jobs.n is float and cannot hold the int 9007199254740993 exactly",
    );
  });

  test("a cell cut from a body does not keep the body in memory", () => {
    const cells: Cell[] = [];
    Bun.gc(true);
    const before = heapStats().extraMemorySize;
    for (let i = 0; i < 100; i++) {
      const pad = "x".repeat(300_000);
      const body = Buffer.from(
        `{"t":"text number ${i} of some length","j":{"k":"json ${i}"},"f":1.500000000000000000000,"l":["element ${i}"],"pad":"${pad}"}`,
      ).toString();
      const members = parseMembers(body);
      cells.push(fitCell(scalar("text"), members.get("t")!, "t"), fitCell(scalar("json"), members.get("j")!, "j"));
      cells.push(fitCell(scalar("json"), members.get("f")!, "f"), fitCell(TEXTS, members.get("l")!, "l"));
    }
    Bun.gc(true);
    expect(heapStats().extraMemorySize - before).toBeLessThan(10_000_000);
    expect(cells.length).toBe(400);
  });
});

describe("cells", () => {
  const rows: readonly (readonly [FieldType, Cell, Value, string])[] = [
    [scalar("bool"), true, true, "true"],
    [scalar("int"), 5, 5, "5"],
    [scalar("int"), 9223372036854775807n, 9223372036854775807n, "9223372036854775807"],
    [scalar("float"), 4, new Float(4), "4"],
    [scalar("float"), 0.1, new Float(0.1), "0.1"],
    [scalar("float"), 1e21, new Float(1e21), "1e+21"],
    [scalar("float"), -0, new Float(-0), "-0"],
    [scalar("text"), 'a"\\\n\0é😀', 'a"\\\n\0é😀', '"a\\"\\\\\\n\\u0000é😀"'],
    [scalar("text"), "\ud800", "\ud800", '"\\ud800"'],
    [scalar("timestamp"), 1801627506000, new Time(1801627506000), '"2027-02-03T04:05:06Z"'],
    [scalar("timestamp"), 1801627506789, new Time(1801627506789), '"2027-02-03T04:05:06.789Z"'],
    [scalar("bytes"), new Uint8Array([0, 255]), new Uint8Array([0, 255]), "[0,255]"],
    [scalar("geo"), new Point(1.5, -2), new Point(1.5, -2), "[1.5,-2]"],
    [scalar("json"), '{"b":1.0,"a":[]}', new Json('{"b":1.0,"a":[]}'), '{"b":1.0,"a":[]}'],
    [scalar("json"), "[1]", new Json("[1]"), "[1]"],
    [scalar("json"), '"x"', "x", '"x"'],
    [scalar("json"), "1.50", new Float(1.5, "1.50"), "1.50"],
    [INTS, [1, null, 9007199254740993n], [1, null, 9007199254740993n], "[1,null,9007199254740993]"],
    [FLOATS, [1, 2.5], [new Float(1), new Float(2.5)], "[1,2.5]"],
    [listOf(TEXTS), [["a"], []], [["a"], []], '[["a"],[]]'],
    [listOf(scalar("timestamp")), [0], [new Time(0)], '["1970-01-01T00:00:00Z"]'],
  ];
  test.each(rows.map((row) => [typeText(row[0]), row[3], ...row] as const))(
    "%s %s as a value and as json",
    (...row) => {
      const [, , type, cell, value, text] = row;
      expect(cellToValue(type, cell)).toEqual(value);
      expect(cellJson(type, cell)).toBe(text);
      expect(fitCell(type, cellToValue(type, cell), "f")).toEqual(cell);
    },
  );

  test("null is null in every type", () => {
    for (const type of [scalar("int"), scalar("json"), scalar("text"), INTS]) {
      expect(cellToValue(type, null)).toBeNull();
      expect(cellJson(type, null)).toBe("null");
    }
  });

  test("texts are json as JSON.stringify writes them", () => {
    withRandom((random) => {
      for (let i = 0; i < 3_000; i++) {
        const text = randomText(random);
        expect(cellJson(scalar("text"), text)).toBe(JSON.stringify(text));
      }
    });
  });

  test("types as they are declared", () => {
    expect(typeText(scalar("int"))).toBe("int");
    expect(typeText(TEXTS)).toBe("[text]");
    expect(typeText(listOf(INTS))).toBe("[[int]]");
  });

  const ladders: readonly (readonly [FieldType, readonly Cell[]])[] = [
    [scalar("bool"), [null, false, true]],
    [
      scalar("int"),
      [null, -(2n ** 63n), -9007199254740993n, -1, 0, 5, 9007199254740991, 9007199254740992n, 2n ** 63n - 1n],
    ],
    [scalar("float"), [null, -1e300, -1, 0, 5e-324, 0.5, 1e300]],
    [scalar("text"), [null, "", "A", "a", "é", "\ue000", "😀"]],
    [scalar("timestamp"), [null, TIME_MIN_MS, -1, 0, TIME_MAX_MS]],
    [scalar("bytes"), [null, new Uint8Array(), new Uint8Array([1]), new Uint8Array([1, 0]), new Uint8Array([255])]],
    [scalar("json"), [null, "false", "true", "-1", "0", "1.5", "2", '"a"', "[]", "[1]", '{"a":1}']],
    [scalar("geo"), [null, new Point(-1, 0), new Point(0, -1), new Point(0, 0)]],
    [INTS, [null, [], [null], [0], [0, 0], [1]]],
  ];
  test.each(ladders.map((row) => [typeText(row[0]), ...row] as const))(
    "the order of %s, null first",
    (_, type, cells) => {
      const order = compareCells(type);
      for (let i = 0; i < cells.length; i++) {
        for (let j = 0; j < cells.length; j++) {
          expect(Math.sign(order(cells[i]!, cells[j]!)) + 0).toBe(Math.sign(i - j) + 0);
          // The order of cells is that of their values.
          const values = compareValues(cellToValue(type, cells[i]!), cellToValue(type, cells[j]!));
          expect(Math.sign(values) + 0).toBe(Math.sign(i - j) + 0);
        }
      }
    },
  );

  test("equal cells written apart", () => {
    expect(compareCells(scalar("float"))(0, -0)).toBe(0);
    expect(compareCells(scalar("json"))('{"a":1,"b":2}', '{"b":2.0,"a":1}')).toBe(0);
    expect(compareCells(scalar("json"))("3", "3.0")).toBe(0);
  });
});

test("a json value and its cell are one value", () => {
  for (const text of ['{"a":[1,2.50]}', "[1,[2]]", '"x"', "1.50", "-0", "true", "9223372036854775808"]) {
    expect(fitCell(scalar("json"), jsonToValue(text), "f")).toBe(text);
  }
  expect(fitCell(scalar("json"), jsonToValue("null"), "f")).toBeNull();
});
