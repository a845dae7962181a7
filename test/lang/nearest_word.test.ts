import { expect, test } from "bun:test";
import { nearestWord } from "../../src/lang/nearest_word.ts";

test("a letter left out, put in, changed or swapped is forgiven", () => {
  const words = ["where", "order", "limit", "returning", "or", "and"];
  for (const [typed, meant] of [
    ["wher", "where"],
    ["wheree", "where"],
    ["whera", "where"],
    ["hwere", "where"],
    ["WHEER", "where"],
    ["oder", "order"],
    ["adn", "and"],
    ["retruning", "returning"],
  ] as const) {
    expect(nearestWord(typed, words)).toBe(meant);
  }
});

test("a word that is far from all of them is nobody's", () => {
  for (const typed of ["", "banana", "x", "on", "lookup", "x".repeat(100_000)]) {
    expect(nearestWord(typed, ["where", "order", "or"])).toBeUndefined();
  }
  expect(nearestWord("run_at", [])).toBeUndefined();
});

test("of words equally near the first is taken", () => {
  expect(nearestWord("nane", ["name", "nano"])).toBe("name");
  expect(nearestWord("nane", ["nano", "name"])).toBe("nano");
});

test("the word itself is the nearest, and candidates keep their case", () => {
  expect(nearestWord("runat", ["run_at", "runAt"])).toBe("runAt");
});
