/** `in` finds what `=` finds, whatever kinds meet. */

import { describe, expect, test } from "bun:test";
import { Asked } from "./asked.ts";

const VALUES = [
  "n",
  "f",
  "s",
  "at",
  "b",
  "p",
  "ok",
  "l",
  "m",
  "m.l",
  "m.s",
  "null",
  "1",
  '"1970-01-01T00:00:00.001Z"',
  "[1, 2]",
];

function everything(): Asked {
  return new Asked(
    "create collection t (n int, f float, s text, at timestamp, b bytes, p geo, ok bool, l [int], m json)",
    'put t [{n: 1, f: 1.0, s: "1970-01-01T00:00:00.001Z", at: 1, b: "1970-01-01T00:00:00.001Z", p: [1, 2], ok: true, l: [1, 2], m: {l: [1, 2], s: "1"}}, {}]',
  );
}

describe("in a list, and in an inner read", () => {
  for (const value of VALUES) {
    test(value, () => {
      const asked = everything();
      for (const member of VALUES) {
        const equals = asked.ask(`get t select id where ${value} = ${member}`);
        expect([member, asked.ask(`get t select id where ${value} in [${member}]`)]).toEqual([member, equals]);
        if (value === "null" || member === "null") continue;
        // The inner read of row 1 alone, against row 1.
        const inner = asked.ask(`get t select id where id = 1 and ${value} in (get t select ${member} where id = 1)`);
        const equal = asked.ask(`get t select id where id = 1 and ${value} = ${member}`);
        expect([member, inner]).toEqual([member, equal]);
      }
    });
  }
});
