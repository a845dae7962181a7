import { describe, expect, test } from "bun:test";
import { expr, from, inc, not, raw } from "../../src/client/index.ts";
import { readJson, writeJson } from "../../src/client/json.ts";

describe("reading", () => {
  test("an int past 2^53 is a bigint, every other number a number", () => {
    const text =
      '{"id":3889108265204450030,"b":[9007199254740991,9007199254740992,-9223372036854775808,1.5,-0,1e3,12345678901234567890.5,1E20],"s":"3889108265204450030"}';
    expect(readJson(text, "exact")).toEqual({
      id: 3889108265204450030n,
      b: [
        9007199254740991,
        9007199254740992n,
        -9223372036854775808n,
        1.5,
        -0,
        1000,
        Number("12345678901234567890.5"),
        1e20,
      ],
      s: "3889108265204450030",
    });
    expect(readJson(text, "number")).toEqual(JSON.parse(text));
    expect(readJson("9007199254740993", "exact")).toBe(9007199254740993n);
  });

  test("digits inside strings and keys stay text, whatever stands before them", () => {
    const value = {
      'a"9007199254740993': "9007199254740993",
      "\\": '\\"9007199254740993,"',
      list: ["\\\\", "int-9007199254740993", ":9007199254740993"],
    };
    expect(readJson(JSON.stringify(value), "exact")).toEqual(value);
    expect(readJson(`{"n":9007199254740993,"v":${JSON.stringify(value)}}`, "exact")).toEqual({
      n: 9007199254740993n,
      v: value,
    });
  });

  test("keys that are properties of objects are keys", () => {
    const read = readJson('{"__proto__":9007199254740993,"constructor":1}', "exact") as object;
    expect(Object.keys(read)).toEqual(["__proto__", "constructor"]);
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
  });

  test("what is no JSON is a SyntaxError, with wide digits in it or not", () => {
    for (const text of ["", "{", "9007199254740993x", '{"a":9007199254740993', '"9007199254740993', "[1,]"]) {
      expect(() => readJson(text, "exact")).toThrow(SyntaxError);
    }
  });
});

describe("writing", () => {
  test("a bigint is its digits, at any depth", () => {
    expect(writeJson({ a: [1n, { b: -9223372036854775808n }], s: "1n" })).toBe(
      '{"a":[1,{"b":-9223372036854775808}],"s":"1n"}',
    );
  });

  test("dates are ISO text, typed arrays lists of numbers, a Buffer too", () => {
    expect(
      writeJson([
        new Date(0),
        new Float32Array([1.5, 2]),
        new Uint8Array([7]),
        Buffer.from("a"),
        new BigInt64Array([5n]),
      ]),
    ).toBe('["1970-01-01T00:00:00.000Z",[1.5,2],[7],[97],[5]]');
  });

  test("a number no field holds is refused, also deep inside", () => {
    for (const value of [Number.NaN, { a: [Number.POSITIVE_INFINITY] }, new Float64Array([Number.NaN])]) {
      expect(() => writeJson(value)).toThrow(expect.objectContaining({ code: "bad-value" }));
    }
  });

  test("what JSON would change without a word is refused, also deep inside", () => {
    const day = new Date("soon");
    for (const value of [[undefined], { a: [() => 1] }, { a: Symbol("s") }, { a: { day } }, [new Map()], [new Set()]]) {
      expect(() => writeJson(value)).toThrow(expect.objectContaining({ code: "bad-value" }));
    }
    for (const value of [new ArrayBuffer(2), new DataView(new ArrayBuffer(2))]) {
      expect(() => writeJson({ value })).toThrow(expect.objectContaining({ code: "bad-value" }));
    }
    expect(writeJson({ a: undefined, b: null })).toBe('{"b":null}');
  });

  test("a piece of a chain is no value, also deep inside", () => {
    for (const piece of [expr("now()"), inc(1), raw("a"), expr("a").as("b"), not({ a: 1 }), from("jobs")]) {
      expect(() => writeJson({ payload: [piece] })).toThrow(expect.objectContaining({ code: "bad-value" }));
    }
  });

  test("what is written is read back: random values", () => {
    const seed = Number(process.env["FENEC_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
    let state = seed;
    const random = (below: number): number => {
      state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
      return Math.floor((state / 0x80000000) * below);
    };
    const texts = ["", "9007199254740993", '"', "\\", '\\"1234567890123456789', "é\u2028\ud800", "__proto__", "int-"];
    const value = (depth: number): unknown => {
      switch (random(depth > 4 ? 5 : 7)) {
        case 0:
          return null;
        case 1:
          return random(2) === 0;
        case 2:
          return (BigInt(random(2 ** 30)) << 33n) + 9007199254740992n;
        case 3:
          return random(2 ** 30) / 8 - 2 ** 26;
        case 4:
          return texts[random(texts.length)];
        case 5:
          return Array.from({ length: random(4) }, () => value(depth + 1));
        default:
          return Object.fromEntries(
            Array.from({ length: random(4) }, (_, i) => [`${texts[random(texts.length)]}${i}`, value(depth + 1)]),
          );
      }
    };
    for (let i = 0; i < 2_000; i++) {
      const written = value(0);
      expect({ seed, value: readJson(writeJson(written), "exact") }).toEqual({ seed, value: written });
    }
  });
});
