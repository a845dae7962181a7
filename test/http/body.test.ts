/** Lines of a batch are read as each would be alone, whatever the line before it was. */

import { expect, test } from "bun:test";
import { Refusal } from "../../src/base/refusal.ts";
import type { BatchRequest } from "../../src/engine/contract.ts";
import { readBatch, readQuery } from "../../src/http/body.ts";
import { Float, Json } from "../../src/value/value.ts";

/** One by one, as the judge. */
function readAlone(lines: readonly string[]): BatchRequest[] | string {
  const requests: BatchRequest[] = [];
  for (const line of lines) {
    try {
      requests.push(readQuery(line));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return `${requests.length}: ${error.code} ${error.message} ${JSON.stringify(error.data)}`;
    }
  }
  return requests;
}

function readTogether(lines: readonly string[]): BatchRequest[] | string {
  try {
    return readBatch(lines.join("\n"));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { at, completed, ...data } = error.data;
    expect(completed).toBe(0);
    const words = error.message.replace(/ \(a batch is one .* a line\)$/, "");
    return `${String(at)}: ${error.code} ${words} ${JSON.stringify(data)}`;
  }
}

const FIRST = '{"query":"del jobs where id = $1 and owner = $2 require 1","params":[1,"w\\"1"]}';
const HEAD = '{"query":"del jobs where id = $1 and owner = $2 require 1","params":';

test.each([
  ["other parameters", '[2,"w1"]}'],
  ["white space and containers", '[ 2 , { "a" : [1.50, 1e2] } ]}'],
  ["an empty list", "[]}"],
  ["null for none", "null}"],
  ["white space behind", "[2]} "],
  ["a line of the other kind", "[2]}\r"],
  ["a member behind", '[2],"more":1}'],
  ["parameters twice", '[2],"params":[3]}'],
  ["a statement twice", '[2],"query":"get jobs"}'],
  ["a brace too many", "[2]}}"],
  ["no brace", "[2]"],
  ["a list that breaks off", "[2,}"],
  ["a text that breaks off", '["w1}'],
  ["a key twice", '[{"a":1,"a":2}]}'],
  ["a number too large", "[1e999]}"],
  ["nested too deep", `${"[".repeat(5_000)}`],
  ["an object", '{"0":1}}'],
  ["a text", '"text"}'],
  ["nothing at all", ""],
])("a line that ends in %s", (_, rest) => {
  for (const lines of [
    [FIRST, HEAD + rest],
    [FIRST, HEAD + rest, FIRST],
    [HEAD + rest, HEAD + rest],
  ]) {
    expect(readTogether(lines)).toEqual(readAlone(lines));
  }
});

test("a statement with escapes, or written in another way, is the same statement", () => {
  const lines = [
    '{"query":"get jobs where a = \\"x\\"","params":[1]}',
    '{"query":"get jobs where a = \\"x\\"","params":[2]}',
    '{"query":"get jobs where a = \\u0022x\\u0022","params":[3]}',
    '{"params":[4],"query":"get jobs where a = \\"x\\""}',
    '{ "query":"get jobs where a = \\"x\\"","params":[5]}',
    '{"query":"get jobs where a = \\"x\\""}',
    '{"query":"get jobs","params":[6]}',
    '{"query":"get jobs","params":[7.50,{"a":1},null,true]}',
  ];
  const read = readBatch(lines.join("\n"));
  expect(read).toEqual(readAlone(lines) as BatchRequest[]);
  expect(read.map(({ params }) => params[0])).toEqual([1, 2, 3, 4, 5, undefined, 6, new Float(7.5, "7.50")]);
  expect(read[7]?.params[1]).toEqual(new Json('{"a":1}'));
});
