import { describe, expect, test } from "bun:test";
import { INT_MAX, INT_MIN, TIME_MAX_MS, TIME_MIN_MS } from "../../src/base/limits.ts";
import { Refusal, type RefusalCode } from "../../src/base/refusal.ts";
import { add, divide, multiply, negate, subtract } from "../../src/value/arithmetic.ts";
import { Float, intOf, Json, Point, Time, type Value } from "../../src/value/value.ts";
import { withRandom } from "../store/random.ts";
import { shown } from "./shown.ts";

const OPERATIONS = { "+": add, "-": subtract, "*": multiply, "/": divide } as const;
type Operator = keyof typeof OPERATIONS;

function outcome(run: () => Value): Value | { refused: RefusalCode } {
  try {
    return run();
  } catch (error) {
    if (error instanceof Refusal) return { refused: error.code };
    throw error;
  }
}

const float = (n: number): Float => new Float(n);
const refused = (code: RefusalCode): { refused: RefusalCode } => ({ refused: code });

describe("the table of operands", () => {
  const rows: readonly (readonly [Value, Operator, Value, Value | { refused: RefusalCode }])[] = [
    [19, "+", 1, 20],
    [19, "-", 20, -1],
    [19, "*", 3, 57],
    [19, "/", 4, 4],
    [-7, "/", 2, -3],
    [7, "/", -2, -3],
    [-7, "/", -2, 3],
    [1, "/", -2, 0],
    [0, "*", -5, 0],
    [0, "/", -5, 0],
    [9007199254740991, "+", 1, 9007199254740992n],
    [9007199254740992n, "-", 1, 9007199254740991],
    [9007199254740993n, "-", 9007199254740990, 3],
    [3037000500, "*", 3037000500, refused("overflow")],
    [3037000499, "*", 3037000499, 9223372030926249001n],
    [INT_MAX, "+", 1, refused("overflow")],
    [INT_MIN, "-", 1, refused("overflow")],
    [INT_MAX, "+", -1, INT_MAX - 1n],
    [INT_MAX, "*", 2, refused("overflow")],
    [INT_MIN, "/", -1, refused("overflow")],
    [INT_MIN, "/", 1, INT_MIN],
    [INT_MAX, "/", 2, 4611686018427387903n],
    [1, "+", float(0.5), float(1.5)],
    [float(0.5), "-", 1, float(-0.5)],
    [float(0.5), "*", float(4), float(2)],
    [7, "/", float(2), float(3.5)],
    [float(7), "/", 2, float(3.5)],
    [new Float(1.5, "1.50"), "+", 0, float(1.5)],
    [INT_MAX, "+", float(0), float(2 ** 63)],
    [float(1e308), "*", 10, refused("overflow")],
    [float(1e308), "+", float(1e308), refused("overflow")],
    [float(-1e308), "-", float(1e308), refused("overflow")],
    [float(1e308), "/", float(0.1), refused("overflow")],
    [float(1e-300), "*", float(1e-300), float(0)],
    [1, "/", 0, refused("division_by_zero")],
    [0, "/", 0, refused("division_by_zero")],
    [float(1), "/", 0, refused("division_by_zero")],
    [1, "/", float(0), refused("division_by_zero")],
    [1, "/", float(-0), refused("division_by_zero")],
    [INT_MAX, "/", 0, refused("division_by_zero")],
    ["a", "+", "b", "ab"],
    ["", "+", "", ""],
    ["a", "-", "b", refused("bad_value")],
    ["a", "*", "b", refused("bad_value")],
    ["a", "/", "b", refused("bad_value")],
    ["a", "+", 1, refused("bad_value")],
    [1, "+", "a", refused("bad_value")],
    ["a", "+", float(1), refused("bad_value")],
    ["a", "*", 2, refused("bad_value")],
    [new Time(1000), "+", 500, new Time(1500)],
    [500, "+", new Time(1000), new Time(1500)],
    [new Time(1000), "-", 1500, new Time(-500)],
    [new Time(1500), "-", new Time(1000), 500],
    [new Time(TIME_MAX_MS), "-", new Time(TIME_MIN_MS), TIME_MAX_MS - TIME_MIN_MS],
    [new Time(TIME_MAX_MS), "+", 1, refused("overflow")],
    [new Time(TIME_MIN_MS), "-", 1, refused("overflow")],
    [new Time(0), "+", INT_MAX, refused("overflow")],
    [new Time(0), "-", INT_MIN, refused("overflow")],
    [500, "-", new Time(1000), refused("bad_value")],
    [new Time(1), "+", new Time(1), refused("bad_value")],
    [new Time(1), "*", 2, refused("bad_value")],
    [2, "*", new Time(1), refused("bad_value")],
    [new Time(1), "/", 2, refused("bad_value")],
    [new Time(1), "+", float(1), refused("bad_value")],
    [new Time(1), "-", float(1), refused("bad_value")],
    [float(1), "+", new Time(1), refused("bad_value")],
    [new Time(1), "+", "a", refused("bad_value")],
    [true, "+", 1, refused("bad_value")],
    [1, "-", true, refused("bad_value")],
    [[1], "+", 1, refused("bad_value")],
    [[1], "+", [2], refused("bad_value")],
    [new Json("{}"), "+", 1, refused("bad_value")],
    [new Uint8Array([1]), "+", new Uint8Array([1]), refused("bad_value")],
    [new Point(1, 1), "-", new Point(1, 1), refused("bad_value")],
  ];
  test.each(rows.map((row) => [shown(row[0]), row[1], shown(row[2]), ...row] as const))("%s %s %s", (...row) => {
    const [, , , a, operator, b, result] = row;
    expect(outcome(() => OPERATIONS[operator](a, b))).toEqual(result);
  });

  test("null with anything is null, division by zero too", () => {
    for (const operation of Object.values(OPERATIONS)) {
      for (const other of [
        null,
        1,
        0,
        2n ** 60n,
        float(1),
        "a",
        true,
        [1],
        new Time(1),
        new Json("{}"),
        new Uint8Array(),
      ]) {
        expect(operation(null, other)).toBeNull();
        expect(operation(other, null)).toBeNull();
      }
    }
  });

  test("negation", () => {
    expect(negate(null)).toBeNull();
    expect(negate(5)).toBe(-5);
    expect(negate(0)).toBe(0);
    expect(negate(INT_MAX)).toBe(-INT_MAX);
    expect(negate(9007199254740992n)).toBe(-9007199254740992n);
    expect(outcome(() => negate(INT_MIN))).toEqual(refused("overflow"));
    expect(negate(new Float(1.5, "1.50"))).toEqual(float(-1.5));
    expect(outcome(() => negate("a"))).toEqual(refused("bad_value"));
    expect(outcome(() => negate(new Time(1)))).toEqual(refused("bad_value"));
  });
});

test("ints are as bigints, in one form, or refused", () => {
  const edges = [0n, 1n, 2n, 3n, 7n, 2n ** 31n, 2n ** 32n, 2n ** 52n, 2n ** 53n, 2n ** 62n, 2n ** 63n];
  withRandom((random) => {
    const int = (): bigint => {
      const near = random.pick(edges) + BigInt(random.below(5) - 2);
      const n = random.chance(0.5) ? near : BigInt(Math.floor(random.next() * 2 ** random.below(54)));
      const signed = random.chance(0.5) ? -n : n;
      return signed < INT_MIN ? INT_MIN : signed > INT_MAX ? INT_MAX : signed;
    };
    for (let i = 0; i < 20_000; i++) {
      const [a, b] = [int(), int()];
      for (const [operator, whole] of [
        ["+", a + b],
        ["-", a - b],
        ["*", a * b],
        ["/", b === 0n ? undefined : a / b],
      ] as const) {
        const right =
          whole === undefined
            ? refused("division_by_zero")
            : whole < INT_MIN || whole > INT_MAX
              ? refused("overflow")
              : intOf(whole);
        const result = outcome(() => OPERATIONS[operator](intOf(a), intOf(b)));
        const isSame = typeof right === "object" ? Bun.deepEquals(result, right) : Object.is(result, right);
        if (!isSame) throw new Error(`${a} ${operator} ${b}: ${Bun.inspect(result)} instead of ${Bun.inspect(right)}`);
      }
    }
  });
});

test("the words name the kinds", () => {
  expect(() => add("a", 1)).toThrow("cannot add a text and an int");
  expect(() => divide(new Time(0), 2)).toThrow("cannot divide a timestamp by an int");
  expect(() => subtract(1, "a")).toThrow("cannot subtract a text from an int");
  expect(() => multiply(new Json("[]"), new Json("{}"))).toThrow("cannot multiply a list and an object");
});
