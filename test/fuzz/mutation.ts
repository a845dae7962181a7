/**
 * Statements and json texts made wrong: pieces of a grammar taken out, doubled, moved, exchanged, nested without end, and put
 * beside what no grammar has. What comes out is seldom sensible and often nearly so.
 */

import type { Random } from "../store/random.ts";

/** Pieces of a text as its reader sees them: texts in quotes, names, numbers, parameters, spaces, signs. */
const PIECES =
  /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?[a-z]*|\$\d+|[\p{L}_][\p{L}\d_]*|\s+|[<>!=]=|<>|./gsu;

const WORDS =
  "get select set put insert into del delete update create collection index drop alter add rename to field on if not exists absent else where order by asc desc limit offset count group having require returning near exact in is null and or has case when then end distinct from as true false explain describe collections compact new id now expired distance within bucket len lower coalesce greatest sum avg min max first last match facet lookup collate required @hash @unique @sorted @geo @ttl".split(
    " ",
  );
const NAMES =
  "__proto__ constructor toString hasOwnProperty valueOf prototype then length id new _x görev 名前 ID Where".split(
    " ",
  );
const SIGNS =
  "( ) [ ] { } , . : ; = != <> <= >= < > ~ + - * / ! % & | ^ @ # -- $ $0 $1 $2 $999999 $1000000 $1000001 ? ?0 ?1 ` \\ \" '".split(
    " ",
  );
const NUMBERS =
  "0 -0 1 -1 007 1_000 1__0 .5 1. 1.5 1e3 1e400 -1e400 1e-400 0x10 1n 9223372036854775807 9223372036854775808 -9223372036854775808 99999999999999999999999999 9007199254740993 1.7976931348623157e308 5e-324 2147483648 4294967296 1mo 0s 15m 9999999999999d".split(
    " ",
  );
const ODD = [
  "\0",
  "\u0001",
  "\ud800",
  "\udc00",
  "\udfff\ud800",
  "\ufeff",
  "\u2028",
  "\u00a0",
  "\u3000",
  "\u200b",
  "\u202e",
  "e\u0301",
  "😀",
  "ß",
  "İ",
  "\uffff",
  "\r\n",
  "\t",
  "\\u0000",
  "\\0",
  "\x7f",
];
const NESTED = [
  (depth: number) => ["(", "1", ")", depth],
  (depth: number) => ["[", "1", "]", depth],
  (depth: number) => ["{a: ", "1", "}", depth],
  (depth: number) => ["not ", "true", "", depth],
  (depth: number) => ["- ", "1", "", depth],
  (depth: number) => ["coalesce(", "1", ")", depth],
  (depth: number) => ["case when true then ", "1", " end", depth],
  (depth: number) => ["", "id", ".k", depth],
  (depth: number) => ["", "1", " + 1", depth],
  (depth: number) => ["", "true", " and true", depth],
  (depth: number) => ["", "true", " or id = 1", depth],
  (depth: number) => ["id in (get jobs select id where ", "true", ")", depth],
  (depth: number) => ["", "{a: 1}", " {a: 1}", depth],
  (depth: number) => ["[", "int", "]", depth],
] as const;

export function piecesOf(text: string): string[] {
  return text.match(PIECES) ?? [];
}

function nested(random: Random): string {
  const depth = random.pick([2, 3, 63, 64, 65, 66, 511, 512, 513, 600, random.chance(0.1) ? 20_000 : 700]);
  const [open, inner, close] = random.pick(NESTED)(depth) as [string, string, string, number];
  return open.repeat(depth) + inner + close.repeat(depth);
}

function foreign(random: Random): string {
  switch (random.below(8)) {
    case 0:
      return random.pick(NAMES);
    case 1:
      return random.pick(SIGNS);
    case 2:
      return random.pick(NUMBERS);
    case 3:
      return random.pick(ODD);
    case 4:
      return random.chance(0.15) ? nested(random) : random.pick(SIGNS);
    case 5:
      return JSON.stringify(random.pick([...ODD, ...NAMES, "x".repeat(random.below(400))]));
    default:
      return random.pick(WORDS);
  }
}

/** A statement, mutated one to four times. `others` lends it pieces. */
export function mutated(random: Random, text: string, others: readonly string[]): string {
  const pieces = piecesOf(text);
  const times = 1 + random.below(4);
  for (let time = 0; time < times && pieces.length > 0; time++) {
    const at = random.below(pieces.length);
    const to = random.below(pieces.length);
    switch (random.below(11)) {
      case 0:
        pieces.splice(at, 1 + random.below(3));
        break;
      case 1:
        pieces.splice(at, 0, pieces[at] as string);
        break;
      case 2: {
        const moved = pieces[at] as string;
        pieces[at] = pieces[to] as string;
        pieces[to] = moved;
        break;
      }
      case 3:
        pieces.splice(at, 0, ` ${foreign(random)} `);
        break;
      case 4:
        pieces[at] = foreign(random);
        break;
      case 5: {
        const from = Math.min(at, to);
        const part = pieces.slice(from, Math.min(from + 12, Math.max(at, to)));
        pieces.splice(random.below(pieces.length), 0, ...part);
        break;
      }
      case 6: {
        const other = piecesOf(random.pick(others));
        const from = random.below(other.length);
        pieces.splice(at, random.below(3), ...other.slice(from, from + 1 + random.below(10)));
        break;
      }
      case 7: {
        // The same word, spelled otherwise.
        const word = pieces[at] as string;
        pieces[at] = random.pick([
          word.toUpperCase(),
          word.slice(0, -1),
          word + word,
          [...word].reverse().join(""),
          `${word}_`,
        ]);
        break;
      }
      case 8:
        pieces.length = at;
        break;
      case 9: {
        const number = pieces.findIndex((piece, index) => index >= at && /^\d/.test(piece));
        if (number >= 0) pieces[number] = random.chance(0.1) ? nested(random) : random.pick(NUMBERS);
        break;
      }
      default: {
        const name = pieces.findIndex((piece, index) => index >= at && /^[\p{L}_]/u.test(piece));
        if (name >= 0) pieces[name] = random.chance(0.3) ? foreign(random) : random.pick([...NAMES, ...WORDS]);
      }
    }
  }
  return pieces.join("");
}

const PARAMETERS = [
  ...[
    "null",
    "true",
    "0",
    "-0",
    "1.5",
    "1e3",
    '""',
    '"a"',
    '"2030-01-31T12:00:00Z"',
    '"\\ud800"',
    '"\\u0000"',
    "[]",
    "{}",
    "[[]]",
    "[null]",
    "[1,2]",
  ],
  ...[
    "[29.01,41.04]",
    "[181,0]",
    "[1e308,1e308]",
    "9223372036854775807",
    "9223372036854775808",
    "123456789012345678901234567890",
    "[{}]",
  ],
  ...[
    '{"__proto__":{"x":1}}',
    '{"constructor":1}',
    '[{"__proto__":1}]',
    '{"id":-1}',
    '[{"id":1},{"id":1}]',
    '[{"id":9007199254740991}]',
    '{"id":null}',
  ],
  ...['{"payload":{"a":{"b":[1,{"c":null}]}},"run_at":"x"}', '[{"a":1},2]', '{"":""}', '{"a":1e400}'],
];

/** Json texts for a statement's parameters: as they were, others, too few, too many. */
export function mutatedParams(random: Random, params: readonly string[]): string[] {
  const made = params.map((param) => (random.chance(0.25) ? random.pick(PARAMETERS) : param));
  if (random.chance(0.1)) made.pop();
  if (random.chance(0.2)) made.push(random.pick(PARAMETERS));
  return made;
}

/** A body that is no json, or other json than it was. */
export function mutatedBody(random: Random, body: string): string {
  const pieces = piecesOf(body);
  const times = 1 + random.below(3);
  for (let time = 0; time < times && pieces.length > 0; time++) {
    const at = random.below(pieces.length);
    switch (random.below(7)) {
      case 0:
        pieces.splice(at, 1);
        break;
      case 1:
        pieces.splice(at, 0, pieces[at] as string);
        break;
      case 2:
        pieces[at] = random.pick([
          ...PARAMETERS,
          ...ODD,
          "undefined",
          "NaN",
          "Infinity",
          "'a'",
          "//",
          "1,",
          ",",
          "{",
          "}",
          "[",
          "]",
        ]);
        break;
      case 3:
        pieces.length = at;
        break;
      case 4:
        pieces[at] = random.pick(['"query"', '"params"', '"wait"', '"Query"', '"__proto__"', '"toString"', '""']);
        break;
      case 5: {
        const depth = random.pick([60, 64, 65, 70, 2_000, 100_000]);
        pieces[at] = "[".repeat(depth) + (random.chance(0.7) ? "]".repeat(depth) : "");
        break;
      }
      default:
        pieces.splice(at, 0, random.pick(ODD));
    }
  }
  return pieces.join("");
}
