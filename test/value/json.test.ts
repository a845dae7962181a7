import { describe, expect, test } from "bun:test";
import { BODY_DEPTH, JSON_DEPTH } from "../../src/base/limits.ts";
import { Refusal } from "../../src/base/refusal.ts";
import {
  canonicalJson,
  compactJson,
  jsonDepth,
  jsonPathSet,
  jsonPathText,
  jsonPathValue,
  jsonToValue,
  listValues,
  numberValue,
  objectEntries,
  parseMembers,
  readJson,
  tooDeep,
  valueToJson,
} from "../../src/value/json.ts";
import { Float, Json, Point, Time, type Value } from "../../src/value/value.ts";
import { withRandom } from "../store/random.ts";
import { randomJson, randomJsonString, randomKey } from "./chance_json.ts";
import { accepts, compactByTokens, sameTree, type Tree, treeAt, treeOf } from "./reference.ts";

/** A refusal's code and words, or undefined when nothing was refused. */
function refusalOf(run: () => unknown): Refusal | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

/** The whole text as one value, or the refusal's code. */
function whole(text: string): string {
  let compact = "";
  const refusal = refusalOf(() => {
    const { text: value, end } = compactJson(text);
    if (text.slice(end).trim() !== "") throw new Refusal("bad_json", "more behind it");
    compact = value;
  });
  return refusal === undefined ? compact : refusal.code;
}

const nestedLists = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
const nestedObjects = (levels: number): string => `${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`;

describe("what is taken, and the form it is kept in", () => {
  const kept: readonly (readonly [string, string])[] = [
    ["0", "0"],
    ["-0", "-0"],
    ["-0.0", "-0.0"],
    ["1E2", "1E2"],
    ["1e+2", "1e+2"],
    ["0.1", "0.1"],
    ["1.50", "1.50"],
    ["9007199254740993", "9007199254740993"],
    ["3889108265204450030", "3889108265204450030"],
    ["123456789012345678901234567890", "123456789012345678901234567890"],
    ["1e308", "1e308"],
    ["1e-400", "1e-400"],
    ["  true\n", "true"],
    [" null", "null"],
    ['"a b"', '"a b"'],
    ['"\\u0041\\/\\n"', '"\\u0041\\/\\n"'],
    ['"\\ud800"', '"\\ud800"'],
    ['"\ud800"', '"\ud800"'],
    ['"\u007f\u2028\ufeff"', '"\u007f\u2028\ufeff"'],
    ["[ ]", "[]"],
    ["{ }", "{}"],
    ['{ "b" : 1 , "10" : 2 ,\t"2":3 }', '{"b":1,"10":2,"2":3}'],
    ['{"": 1}', '{"":1}'],
    ['{"__proto__":{"x":1},"constructor":2}', '{"__proto__":{"x":1},"constructor":2}'],
    ['{"a":{"a":1},"b":{"a":1}}', '{"a":{"a":1},"b":{"a":1}}'],
    ["[1, [2 ,3], {} ]", "[1,[2,3],{}]"],
  ];
  test.each(kept)("%j", (text, form) => {
    expect(whole(text)).toBe(form);
  });

  const refused: readonly string[] = [
    "",
    "   ",
    "tru",
    "nul",
    "TRUE",
    "NaN",
    "Infinity",
    "-Infinity",
    "undefined",
    "01",
    "-01",
    "+1",
    "1.",
    ".5",
    "1e",
    "1e+",
    "-",
    "0x10",
    "1_000",
    "1e400",
    "-1e400",
    "9".repeat(400),
    "'a'",
    '"a',
    '"a\nb"',
    '"\u0000"',
    '"\u001f"',
    '"\\x"',
    '"\\u12"',
    '"\\u12g4"',
    '"\\"',
    "[1,]",
    "[,1]",
    "[1 2]",
    "[1}",
    "[",
    "[1",
    "]",
    "{",
    "{a:1}",
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{"a":1 "b":2}',
    '{"a":1]',
    '{"a" 1}',
    "{1:2}",
    '{"a":1,"a":2}',
    '{"a":1,"\\u0061":2}',
    '{"\\u0061":1,"a":2}',
    '{"x":[{"a":1,"b":2,"a":3}]}',
    "\ufeff1",
    "\u00a01",
    "1,2",
    "// a\n1",
  ];
  test.each(refused)("refused: %j", (text) => {
    expect(whole(text)).toBe("bad_json");
  });

  test("a key twice among many, and many keys that are all different", () => {
    const members = Array.from({ length: 5_000 }, (_, i) => `"k${i}":${i}`);
    expect(whole(`{${members.join(",")}}`)).toBe(`{${members.join(",")}}`);
    for (const again of ["k0", "k11", "k12", "k13", "k4999"]) {
      expect(whole(`{${members.join(",")},"${again}":0}`)).toBe("bad_json");
      expect(whole(`{${members.join(",")},"\\u006b${again.slice(1)}":0}`)).toBe("bad_json");
    }
  });

  test("a refusal leaves nothing behind for the next check", () => {
    expect(whole('{"\\u0061":1,"b":[}')).toBe("bad_json");
    expect(whole('{"a":1,"b":[{"a":1}]}')).toBe('{"a":1,"b":[{"a":1}]}');
  });

  test("starts where it is told, and says where it ended", () => {
    expect(compactJson('x, {"a": 1} ,2', 2)).toEqual({ text: '{"a":1}', end: 11 });
    expect(compactJson("12]")).toEqual({ text: "12", end: 2 });
  });
});

describe("the words of a refusal name the path", () => {
  const rows: readonly (readonly [string, string, number])[] = [
    ['{"payload":{"a":[1,2,{"b":1e400}]}}', "payload.a[2].b", 26],
    ['{"payload":{"a":1,"a":2}}', "payload", 18],
    ["[[0],[1,x]]", "[1][1]", 8],
    ['{"a":1,"b":tru}', "b", 11],
    ["nope", "", 0],
  ];
  test.each(rows)("%j", (text, path, offset) => {
    const refusal = refusalOf(() => compactJson(text));
    expect(refusal?.data).toEqual({ path, offset });
    expect(refusal?.message).toContain(path);
  });

  test("in a body, from its member on", () => {
    const refusal = refusalOf(() => parseMembers('{"query":"q","params":[{"payload":{"a":1,"a":2}}]}'));
    expect(refusal?.message).toBe('json at params[0].payload: the key "a" stands twice');
  });

  test("a path or key without end is cut", () => {
    const deep = `${'{"key":'.repeat(60)}x`;
    expect(refusalOf(() => compactJson(deep))!.message.length).toBeLessThan(400);
    const long = `{"${"k".repeat(100_000)}":x}`;
    expect(refusalOf(() => compactJson(long))!.message.length).toBeLessThan(400);
    const twice = `{"${"k".repeat(100_000)}":1,"${"k".repeat(100_000)}":2}`;
    expect(refusalOf(() => compactJson(twice))!.message.length).toBeLessThan(400);
  });
});

describe("depth", () => {
  test("64 levels are taken, 65 are not", () => {
    expect(whole(nestedLists(JSON_DEPTH))).toBe(nestedLists(JSON_DEPTH));
    expect(whole(nestedObjects(JSON_DEPTH))).toBe(nestedObjects(JSON_DEPTH));
    expect(whole(nestedLists(JSON_DEPTH + 1))).toBe("too_deep");
    expect(whole(nestedObjects(JSON_DEPTH + 1))).toBe("too_deep");
  });

  test.each([100, 1_200, 3_000, 10_000, 45_000, 1_000_000])("%d levels are refused, naming the limit", (levels) => {
    for (const text of [nestedLists(levels), nestedObjects(levels), "[".repeat(levels), '{"a":['.repeat(levels)]) {
      const refusal = refusalOf(() => compactJson(text));
      expect(refusal?.code).toBe("too_deep");
      expect(refusal?.message).toContain("64 levels");
    }
  });

  test("a body is given room for what stands around a json field", () => {
    const field = nestedLists(JSON_DEPTH);
    const members = parseMembers(`{"params":[[{"payload":${field}}]]}`);
    expect(members.get("params")).toEqual(new Json(`[[{"payload":${field}}]]`));
    expect(refusalOf(() => parseMembers(`{"params":[[{"payload":[${field}]}]]}`))?.code).toBe("too_deep");
    expect(whole(nestedLists(BODY_DEPTH))).toBe("too_deep");
    expect(compactJson(nestedLists(BODY_DEPTH), 0, BODY_DEPTH).end).toBe(2 * BODY_DEPTH);
  });

  test("is counted in valid text", () => {
    expect(jsonDepth("1")).toBe(0);
    expect(jsonDepth('"[[["')).toBe(0);
    expect(jsonDepth('{"a":[1,{"b":[]}],"c":[]}')).toBe(4);
    expect(tooDeep(nestedLists(JSON_DEPTH))).toBe(false);
    expect(tooDeep(nestedLists(JSON_DEPTH + 1))).toBe(true);
    expect(tooDeep(nestedObjects(JSON_DEPTH + 1))).toBe(true);
  });
});

describe("bodies", () => {
  test("members in their order, numbers and containers as values", () => {
    const members = parseMembers(
      ' {"query": "a\\nb", "n": 5, "big": 9223372036854775807, "bigger": 9223372036854775808, "zero": -0, "f": 1.50, "g": 1.5,' +
        ' "t": true, "z": null, "l": [1, {"a": 2.0}], "o": {"__proto__": 1}, "__proto__": 3} ',
    );
    expect([...members]).toEqual([
      ["query", "a\nb"],
      ["n", 5],
      ["big", 9223372036854775807n],
      ["bigger", new Float(2 ** 63, "9223372036854775808")],
      ["zero", new Float(-0, "-0")],
      ["f", new Float(1.5, "1.50")],
      ["g", new Float(1.5)],
      ["t", true],
      ["z", null],
      ["l", new Json('[1,{"a":2.0}]')],
      ["o", new Json('{"__proto__":1}')],
      ["__proto__", 3],
    ]);
    expect(parseMembers(" { } ").size).toBe(0);
  });

  const refused: readonly (readonly [string, string])[] = [
    ["", "the body is empty"],
    [" \n", "the body is empty"],
    ["[1]", "the body is a list"],
    ["5", "the body is a number"],
    ['"a"', "the body is a text"],
    ["true", "the body is a bool"],
    ["null", "the body is null"],
    ["\ufeff{}", "byte order mark"],
    ["{} x", "behind it stands"],
    ['{"a":1} {"b":2}', "behind it stands"],
    ["[1] 2", "behind it stands"],
    ['{"a":1,"a":2}', '"a" stands twice'],
    ['{"a":1,"\\u0061":2}', '"a" stands twice'],
    ['{"a":1', "found the end"],
    ['{"a":1,}', "expected a key"],
    ['{"a"}', "expected :"],
    ["{a:1}", "expected a key"],
    ['{"a\n":1}', "control character"],
    ["{", "found the end"],
    ["hello", "expected a value"],
  ];
  test.each(refused)("refused: %j", (text, words) => {
    const refusal = refusalOf(() => parseMembers(text));
    expect(refusal?.code).toBe("bad_json");
    expect(refusal?.message).toContain(words);
  });

  test("readJson takes one whole value", () => {
    expect(readJson(" [1, 2] ")).toEqual(new Json("[1,2]"));
    expect(readJson(" 2.50")).toEqual(new Float(2.5, "2.50"));
    expect(readJson('"x"')).toBe("x");
    expect(refusalOf(() => readJson("1 2"))?.code).toBe("bad_json");
    expect(refusalOf(() => readJson(""))?.code).toBe("bad_json");
  });
});

describe("numbers", () => {
  const rows: readonly (readonly [string, number | bigint | Float])[] = [
    ["0", 0],
    ["-5", -5],
    ["9007199254740991", 9007199254740991],
    ["9007199254740992", 9007199254740992n],
    ["-9007199254740993", -9007199254740993n],
    ["9223372036854775807", 2n ** 63n - 1n],
    ["-9223372036854775808", -(2n ** 63n)],
    ["9223372036854775808", new Float(2 ** 63, "9223372036854775808")],
    ["-9223372036854775809", new Float(-(2 ** 63), "-9223372036854775809")],
    [
      "123456789012345678901234567890",
      new Float(Number("123456789012345678901234567890"), "123456789012345678901234567890"),
    ],
    ["-0", new Float(-0, "-0")],
    ["-0.0", new Float(-0, "-0.0")],
    ["5.0", new Float(5, "5.0")],
    ["1E2", new Float(100, "1E2")],
    ["0.1", new Float(0.1)],
    ["1e-7", new Float(1e-7)],
    ["1e+21", new Float(1e21)],
    ["1e21", new Float(1e21, "1e21")],
  ];
  test.each(rows)("%s", (digits, value) => {
    expect(numberValue(digits)).toEqual(value);
    expect(jsonToValue(digits)).toEqual(value);
    expect(valueToJson(value)).toBe(digits);
  });
});

describe("one level at a time", () => {
  test("lists and objects are decoded, what is inside stays text", () => {
    expect(listValues(new Json('[1,"a,]",[2,"]"],{"b":[]},null,-0.50]'))).toEqual([
      1,
      "a,]",
      new Json('[2,"]"]'),
      new Json('{"b":[]}'),
      null,
      new Float(-0.5, "-0.50"),
    ]);
    expect(objectEntries(new Json('{"a":1,"\\u0062":{"c":"}"},"__proto__":[]}'))).toEqual([
      ["a", 1],
      ["b", new Json('{"c":"}"}')],
      ["__proto__", new Json("[]")],
    ]);
    expect(listValues(new Json("[]"))).toEqual([]);
    expect(objectEntries(new Json("{}"))).toEqual([]);
    expect(new Json("[]").isList).toBe(true);
    expect(new Json("{}").isList).toBe(false);
  });

  test("values as json text", () => {
    const rows: readonly (readonly [Value, string])[] = [
      [null, "null"],
      [true, "true"],
      [5, "5"],
      [2n ** 62n, "4611686018427387904"],
      [new Float(4), "4"],
      [new Float(4, "4.0"), "4.0"],
      [new Float(-0), "-0"],
      [new Float(1e21), "1e+21"],
      ['a"\n\ud800', '"a\\"\\n\\ud800"'],
      [new Time(0), '"1970-01-01T00:00:00Z"'],
      [new Uint8Array([0, 255]), "[0,255]"],
      [new Uint8Array(), "[]"],
      [new Point(1.5, -2), "[1.5,-2]"],
      [new Json('{"b":1.0}'), '{"b":1.0}'],
      [[1, [new Float(0.5), "x"], new Json("{}"), []], '[1,[0.5,"x"],{},[]]'],
    ];
    for (const [value, text] of rows) expect(valueToJson(value)).toBe(text);
  });

  test("a list of lists without end is refused, not a stack that overflows", () => {
    let list: Value = [];
    for (let i = 0; i < 100_000; i++) list = [list];
    expect(refusalOf(() => valueToJson(list))?.code).toBe("too_deep");
  });
});

describe("paths", () => {
  const document =
    '{"a":{"b":[1,{"c":2}],"":5,"t":"}\\"{"},"10":1.50,"__proto__":{"x":1},"\\u0065sc":7,"a.b":8,"n":null,"constructor":9}';
  const rows: readonly (readonly [readonly string[], string | undefined])[] = [
    [[], document],
    [["a"], '{"b":[1,{"c":2}],"":5,"t":"}\\"{"}'],
    [["a", "b"], '[1,{"c":2}]'],
    [["a", "b", "0"], undefined],
    [["a", ""], "5"],
    [["a", "t"], '"}\\"{"'],
    [["10"], "1.50"],
    [["__proto__"], '{"x":1}'],
    [["__proto__", "x"], "1"],
    [["esc"], "7"],
    [["\\u0065sc"], undefined],
    [["a.b"], "8"],
    [["n"], "null"],
    [["n", "x"], undefined],
    [["constructor"], "9"],
    [["toString"], undefined],
    [["hasOwnProperty"], undefined],
    [["c"], undefined],
  ];
  test.each(rows)("%j", (keys, text) => {
    expect(jsonPathText(document, keys)).toBe(text);
    expect(jsonPathValue(document, keys)).toEqual(text === undefined ? null : jsonToValue(text));
  });

  test("into what is no object leads nowhere", () => {
    for (const text of ["null", "5", '"a"', "[1]", "{}", "true"]) expect(jsonPathText(text, ["a"])).toBeUndefined();
  });

  const sets: readonly (readonly [string | null, readonly string[], string, string])[] = [
    [null, ["a"], "1", '{"a":1}'],
    [null, ["a", "b", "c"], "[]", '{"a":{"b":{"c":[]}}}'],
    ["null", ["a"], "1", '{"a":1}'],
    ["{}", ["a"], "1", '{"a":1}'],
    ['{"a":1}', ["a"], "2", '{"a":2}'],
    ['{"z":1.50,"a":{"k":1E2}}', ["a", "k"], "null", '{"z":1.50,"a":{"k":null}}'],
    ['{"z":1}', ["a"], "2", '{"z":1,"a":2}'],
    ['{"z":1}', ["a", "b"], "2", '{"z":1,"a":{"b":2}}'],
    ['{"a":null,"z":1}', ["a", "b"], "2", '{"a":{"b":2},"z":1}'],
    ['{"a":{"b":{}},"z":1}', ["a", "b", "c"], "2", '{"a":{"b":{"c":2}},"z":1}'],
    ['{"\\u0061":1,"z":1}', ["a"], "2", '{"\\u0061":2,"z":1}'],
    ["{}", ["__proto__"], "2", '{"__proto__":2}'],
    ["{}", ['q"uote'], "2", '{"q\\"uote":2}'],
    ['{"10":1}', ["2"], "2", '{"10":1,"2":2}'],
  ];
  test.each(sets)("%j set %j to %s", (text, keys, value, result) => {
    expect(jsonPathSet(text, keys, value)).toBe(result);
  });

  const refusedSets: readonly (readonly [string, readonly string[], string])[] = [
    ["5", ["a"], "the field is a number"],
    ['{"a":[1]}', ["a", "b"], "a is a list"],
    ['{"a":{"b":"x"}}', ["a", "b", "c"], "a.b is a text"],
    ['{"a":true}', ["a", "b"], "a is a bool"],
  ];
  test.each(refusedSets)("%j set %j is refused", (text, keys, words) => {
    const refusal = refusalOf(() => jsonPathSet(text, keys, "1"));
    expect(refusal?.code).toBe("bad_value");
    expect(refusal?.message).toContain(words);
  });

  test("a set may reach the last level and no further", () => {
    const keys = Array.from({ length: JSON_DEPTH }, () => "k");
    expect(jsonDepth(jsonPathSet(null, keys, "1"))).toBe(JSON_DEPTH);
    expect(refusalOf(() => jsonPathSet(null, keys, "[]"))?.code).toBe("too_deep");
    expect(refusalOf(() => jsonPathSet(null, [...keys, "k"], "1"))?.code).toBe("too_deep");
  });
});

describe("canonical text", () => {
  const equal: readonly (readonly [string, string])[] = [
    ['{"b":1,"a":2}', '{"a":2,"b":1}'],
    ["[1,2.0,1e2]", "[1.0,2,100]"],
    ['"\\u0061\\/"', '"a/"'],
    ['{"\\u0061":-0}', '{"a":0.0}'],
    ["1e21", "1000000000000000000000"],
    ["4611686018427387904", "4611686018427387904.0"],
    ["9223372036854775808", "9223372036854775808.0"],
    ['"\\ud83d\\ude00"', '"😀"'],
    ['"\\ud800"', '"\ud800"'],
    ["123456789012345678901234567890", "123456789012345678901234567891"],
  ];
  test.each(equal)("%s and %s are one", (a, b) => {
    expect(canonicalJson(a)).toBe(canonicalJson(b));
  });
  const different: readonly (readonly [string, string])[] = [
    ["9007199254740993", "9007199254740992"],
    ["9223372036854775807", "9223372036854775807.0"],
    ["3889108265204450030", "3889108265204450031"],
    ["1", '"1"'],
    ["null", "{}"],
    ["[1,2]", "[2,1]"],
    ['{"a":1}', '{"a":1,"b":null}'],
  ];
  test.each(different)("%s and %s are two", (a, b) => {
    expect(canonicalJson(a)).not.toBe(canonicalJson(b));
  });
});

const ROUNDS = Number(process.env["FENEC_ROUNDS"] ?? 1);

describe("against a plainer reading", () => {
  test("random texts: taken or refused alike, and kept alike", () => {
    withRandom((random) => {
      let taken = 0;
      for (let i = 0; i < 4_000 * ROUNDS; i++) {
        const text = randomJson(random, { levels: 1 + random.below(6), spaces: random.chance(0.5), twice: 0.1 });
        const isTaken = accepts(text, JSON_DEPTH);
        if (isTaken) taken++;
        expect([text, whole(text)]).toEqual([text, isTaken ? compactByTokens(text) : "bad_json"]);
      }
      expect(taken).toBeGreaterThan(2_000);
    });
  });

  test("texts with a few characters changed: taken or refused alike", () => {
    const strange = [
      '"',
      "\\",
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      "0",
      "1",
      "-",
      "e",
      ".",
      "u",
      " ",
      "\n",
      "\u0001",
      "t",
      "é",
    ];
    withRandom((random) => {
      let taken = 0;
      for (let i = 0; i < 8_000 * ROUNDS; i++) {
        let text = randomJson(random, { levels: 3, spaces: random.chance(0.3), twice: 0.1 });
        for (let changes = 1 + random.below(2); changes > 0; changes--) {
          const at = random.below(text.length + 1);
          const cut = random.below(2);
          text = text.slice(0, at) + (random.chance(0.7) ? random.pick(strange) : "") + text.slice(at + cut);
        }
        const isTaken = accepts(text, JSON_DEPTH);
        if (isTaken) taken++;
        expect([text, whole(text)]).toEqual([text, isTaken ? compactByTokens(text) : "bad_json"]);
      }
      expect(taken).toBeGreaterThan(500);
    });
  });

  test("every character alone, where a value is expected, in a string and as a key", () => {
    for (let unit = 0; unit < 65_536; unit++) {
      const character = String.fromCharCode(unit);
      const isSpaceSomewhere = unit < 256 || /\s/.test(character) || unit === 0x180e || unit === 0x200b;
      for (const text of isSpaceSomewhere ? [character, `[${character}1]`, `"${character}"`] : [`"${character}"`]) {
        let isTaken = true;
        try {
          JSON.parse(text);
        } catch {
          isTaken = false;
        }
        if ((whole(text) !== "bad_json") !== isTaken) throw new Error(`${JSON.stringify(text)} is judged otherwise`);
      }
    }
  });

  /** What was decoded level by level, as a tree again. */
  const decoded = (value: Value): Tree => {
    if (value === null) return { kind: "null" };
    if (typeof value === "boolean") return { kind: "bool", value };
    if (typeof value === "string") return { kind: "text", value };
    if (!(value instanceof Json)) return { kind: "number", digits: valueToJson(value) };
    if (value.isList) return { kind: "list", elements: listValues(value).map(decoded) };
    return { kind: "object", members: objectEntries(value).map(([key, member]) => [key, decoded(member)]) };
  };

  test("decoding level by level gives the tree, digit for digit and key for key", () => {
    withRandom((random) => {
      for (let i = 0; i < 2_000 * ROUNDS; i++) {
        const text = randomJson(random, { levels: 1 + random.below(5), spaces: true, twice: 0 });
        expect(decoded(readJson(text))).toEqual(treeOf(text));
      }
    });
  });

  test("members of a body are those of the value", () => {
    withRandom((random) => {
      for (let i = 0; i < 1_500 * ROUNDS; i++) {
        const text = randomJson(random, { levels: 3, spaces: random.chance(0.5), twice: 0.2 });
        const value = accepts(text, JSON_DEPTH) ? readJson(text) : undefined;
        if (value instanceof Json && !value.isList) expect([...parseMembers(text)]).toEqual(objectEntries(value));
        else expect(refusalOf(() => parseMembers(text))?.code).toBe("bad_json");
      }
    });
  });

  test("paths read and set as in the tree", () => {
    withRandom((random) => {
      let hits = 0;
      for (let i = 0; i < 4_000 * ROUNDS; i++) {
        const [a, b] = [1, 2].map(() => randomJson(random, { levels: 4, spaces: false, twice: 0 }));
        const text = `{"a":${a},"\\u0062":${b},"__proto__":{"c":${a}}}`;
        const tree = treeOf(text);
        const keys: string[] = [];
        for (let here: Tree | undefined = tree, k = random.below(4); k >= 0; k--) {
          const known: readonly string[] = here?.kind === "object" ? here.members.map(([key]) => key) : [];
          keys.push(known.length > 0 && random.chance(0.85) ? random.pick(known) : randomKey(random));
          here = treeAt(tree, keys);
        }
        const found = treeAt(tree, keys);
        const raw = jsonPathText(text, keys);
        if (found !== undefined) hits++;
        expect(raw === undefined ? undefined : treeOf(raw)).toEqual(found);

        const value = random.pick(["1.50", "null", '{"x":[]}', '"s"']);
        const refusal = refusalOf(() => {
          const set = jsonPathSet(text, keys, value);
          expect(accepts(set, JSON_DEPTH)).toBe(true);
          expect(jsonPathText(set, keys)).toBe(value);
          // Put back what was there, and nothing else has moved; what was made anew goes away with its outermost key.
          if (raw !== undefined) expect(jsonPathSet(set, keys, raw)).toBe(text);
        });
        let isBarred = false;
        for (let k = 0; k < keys.length; k++) {
          const here = treeAt(tree, keys.slice(0, k));
          if (here !== undefined && here.kind !== "object" && here.kind !== "null") isBarred = true;
        }
        expect(refusal?.code).toBe(isBarred ? "bad_value" : (undefined as never));
      }
      expect(hits).toBeGreaterThan(500);
    });
  });

  test("canonical texts are equal exactly when the trees are", () => {
    withRandom((random) => {
      let same = 0;
      const pool: string[] = [];
      for (let i = 0; i < 150; i++) pool.push(randomJson(random, { levels: 2, spaces: false, twice: 0 }));
      // The same trees in other clothes: members turned round, strings escaped anew, numbers rewritten.
      const dressed = (tree: Tree): string => {
        if (tree.kind === "text") return randomJsonString(random, tree.value);
        if (tree.kind === "list") return `[${tree.elements.map(dressed).join(",")}]`;
        if (tree.kind === "object") {
          const members = tree.members.map(([key, member]) => `${randomJsonString(random, key)}:${dressed(member)}`);
          return `{${members.reverse().join(",")}}`;
        }
        if (tree.kind === "number") return /^-?\d{1,15}$/.test(tree.digits) ? `${tree.digits}.0` : tree.digits;
        return tree.kind === "bool" ? String(tree.value) : "null";
      };
      for (const text of pool.slice(0, 100)) pool.push(dressed(treeOf(text)));
      for (const a of pool) {
        for (const b of pool) {
          const isSame = sameTree(treeOf(a), treeOf(b));
          if (isSame) same++;
          if ((canonicalJson(a) === canonicalJson(b)) !== isSame)
            throw new Error(`${a} and ${b}: ${isSame ? "one" : "two"}`);
        }
      }
      expect(same).toBeGreaterThan(pool.length);
    });
  });
});

test("the server's own objects are untouched by keys that are also properties", () => {
  parseMembers('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}');
  jsonPathSet('{"__proto__":{}}', ["__proto__", "polluted"], "1");
  canonicalJson('{"__proto__":{"polluted":1}}');
  expect(({} as { polluted?: number }).polluted).toBeUndefined();
});
