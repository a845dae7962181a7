import { describe, expect, test } from "bun:test";
import { difference, readExact, writeExact } from "./exact_json.ts";

function differ(expected: string, got: string, tolerance = 0): boolean {
  return difference(readExact(expected), readExact(got), tolerance) !== undefined;
}

describe("reading", () => {
  test("keeps digits and key order, and drops white space alone", () => {
    const text = '{"b":1.50,"10":[-0,1E2,9223372036854775807,null,true,false],"2":{"\\u00e9\\n":"x"}}';
    expect(writeExact(readExact(text.replaceAll(",", " , ").replaceAll("[", "[\n")))).toBe(
      text.replace("\\u00e9", "é"),
    );
    expect(writeExact(readExact("[[],{}]"))).toBe("[[],{}]");
  });

  test("refuses what is no json", () => {
    for (const text of ["", "[1,]", "{", '{"a":1,"a":2}', "01", "1 2", '{"a" 1}', "nul", "'a'", "[1"]) {
      expect(() => readExact(text)).toThrow(SyntaxError);
    }
  });
});

describe("comparing", () => {
  test("numbers by value, whatever they were written as", () => {
    for (const [one, other] of [
      ["2", "2.0"],
      ["100", "1E2"],
      ["0", "-0.0"],
      ["0.1", "1e-1"],
      ["-1.50", "-1.5"],
      ["0.00", "0e5"],
    ] as const) {
      expect(differ(one, other)).toBe(false);
    }
    for (const [one, other] of [
      ["9007199254740993", "9007199254740992"],
      ["1", "-1"],
      ["10", "1"],
      ["0.1", "0.01"],
      ["1", "true"],
      ["0", "null"],
    ] as const) {
      expect(differ(one, other)).toBe(true);
    }
  });

  test("within a tolerance where one is given", () => {
    expect(differ("1.0", "1.0009", 0.001)).toBe(false);
    expect(differ("1.0", "1.0011", 0.001)).toBe(true);
  });

  test("objects whole, in any order; lists whole, in order", () => {
    expect(differ('{"a":1,"b":2}', '{"b":2,"a":1}')).toBe(false);
    expect(differ('{"a":1}', '{"a":1,"b":null}')).toBe(true);
    expect(differ('{"a":1,"b":null}', '{"a":1}')).toBe(true);
    expect(differ("[1,2]", "[2,1]")).toBe(true);
    expect(differ("[1]", "[1,1]")).toBe(true);
    expect(differ("[]", "{}")).toBe(true);
  });

  test("names the place", () => {
    expect(difference(readExact('[{"a":[1]}]'), readExact('[{"a":[2]}]'))).toBe("answer[0].a[0]: expected 1, got 2");
  });
});
