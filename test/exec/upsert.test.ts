/** An upsert sees the rows as the documents before it left them. */

import { describe, expect, test } from "bun:test";
import { Asked } from "./asked.ts";

describe("a document that meets two rows", () => {
  const rows = "put t [{k: 3}, {k: 4}]";

  test("one of which an earlier document gave the value", () => {
    const asked = new Asked("create collection t (k int @unique)", rows);
    expect(asked.ask("put t [{k: 3}, {k: 4}] if absent else set {k: k + 1}")).toBe(409);
    expect(asked.ask("get t")).toBe('[{"id":1,"k":3},{"id":2,"k":4}]');
  });

  test("one by its id, one by a value", () => {
    const asked = new Asked("create collection t (k int @unique)", rows);
    expect(asked.ask("put t {id: 1, k: 4} if absent else set {k: 9}")).toBe(409);
  });
});

test("a row that another took the value from for a moment still holds it", () => {
  const asked = new Asked("create collection t (k int @unique)", "put t [{k: 1}, {k: 2}]");
  const documents = "[{k: 1}, {k: 2}, {k: 6}]";
  const patch = "{k: case when k = 1 then 5 when k = 2 then 6 else k + 1 end}";
  expect(asked.ask(`put t ${documents} if absent else set ${patch}`)).toBe('{"affected":3}');
  expect(asked.ask("get t")).toBe('[{"id":1,"k":5},{"id":2,"k":7}]');
  expect(
    asked.ask("put t [{k: 5}, {k: 7}, {k: 9}, {k: 8}] if absent else set {k: case when k < 9 then 9 else 8 end}"),
  ).toBe(409);
});

test("a value that an earlier document moved on from is met by nobody", () => {
  const asked = new Asked("create collection t (k int @unique)", "put t [{k: 3}, {k: 5}]");
  expect(asked.ask("put t [{k: 3}, {k: 3}] if absent else set {k: k + 1}")).toBe('{"affected":2}');
  expect(asked.ask("get t")).toBe('[{"id":1,"k":4},{"id":2,"k":5},{"id":3,"k":3}]');
});
