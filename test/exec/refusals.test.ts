/** Which refusal wins where a statement is wrong in several ways: misfits (400), then taken values (409), `require` last. */

import { describe, expect, test } from "bun:test";
import { Asked } from "./asked.ts";

function people(): Asked {
  return new Asked(
    "create collection people (name text required, mail text @unique, age int)",
    'put people [{name: "a", mail: "a@x", age: 1}, {name: "b", mail: "b@x", age: 2}]',
  );
}

describe("require is judged last", () => {
  for (const [text, status] of [
    ['set people {age: "old"} require 5', 400],
    ['set people {mail: "c@x"} require 5', 409],
    ["set people {age: 3} require 5", 412],
    ['put people [{name: "c", mail: "a@x"}] require 5', 409],
    ['put people {name: "c", age: "old"} require 5', 400],
    ['put people {name: "c"} require 5', 412],
    ['insert people {id: 1, name: "c"} require 5', 409],
    ["get people select age / 0 as x require 5", 400],
    ["get people require 5", 412],
    ["get people select age, sum(age / 0) as x group age require 5", 400],
    ["del people returning age / 0 as x require 5", 400],
  ] as const) {
    test(`${status}: ${text}`, () => expect(people().ask(text)).toBe(status));
  }
});

describe("a document that does not fit is refused before one whose values are taken", () => {
  for (const [text, status] of [
    ['insert people [{id: 1, name: "c"}, {age: 3}]', 400],
    ['insert people [{id: 1, name: "c"}, {name: 3}]', 400],
    ['put people [{id: 1, name: "c", mail: "b@x"}, {age: 3}] if absent else set {age: 4}', 400],
    ['insert people [{id: 1, name: "c"}, {name: "d"}]', 409],
  ] as const) {
    test(`${status}: ${text}`, () => expect(people().ask(text)).toBe(status));
  }
});

describe("an id is a whole number from 0", () => {
  for (const id of [
    "-1",
    "-9007199254740991",
    "9007199254740991",
    "9223372036854775807",
    "2.5",
    '"1"',
    "true",
    "-0.5",
  ]) {
    test(`${id} is none`, () => {
      expect(people().ask(`put people {id: ${id}, name: "c"}`)).toBe(400);
      expect(people().ask("put people $1", `{"id":${id},"name":"c"}`)).toBe(400);
    });
  }

  for (const id of ["0", "2.0", "9007199254740990"]) {
    test(`${id} is one`, () => expect(people().ask(`put people {id: ${id}, name: "c"}`)).toBe('{"affected":1}'));
  }
});

describe("bytes have no json", () => {
  for (const text of [
    "set f {m: b}",
    "set f {m: [b]}",
    "set f {m: {k: b}}",
    "set f {m.k: b}",
    "set f {m: {k: [{k: b}]}}",
  ]) {
    test(text, () => {
      const asked = new Asked("create collection f (b bytes, m json)", 'put f {b: "x"}');
      expect(asked.ask(text)).toBe(400);
    });
  }
});

test("behind the last id none is given, to one row or to several, however they are sent", () => {
  const asked = new Asked("create collection t (n int)", "put t {id: 9007199254740990}", "put t {n: 1}");
  for (const documents of ["{n: 2}", "[{n: 2}, {n: 3}]", "[{n: 2}, {n: 3}, {n: 4}]"]) {
    expect(asked.ask(`put t ${documents}`)).toBe(400);
    expect(asked.ask(`put t ${documents} if absent`)).toBe(400);
  }
  expect(asked.ask("put t $1", '[{"n":2}]')).toBe(400);
  expect(asked.ask("get t count")).toBe('[{"count":2}]');
});

test("the last id is given, and none behind it", () => {
  const asked = people();
  asked.ask('put people {id: 9007199254740989, name: "c"}');
  expect(asked.ask('put people [{name: "d"}, {name: "e"}, {name: "f"}]')).toBe(400);
  expect(asked.ask("get people where id > 9 select id")).toBe('[{"id":9007199254740989}]');
  expect(asked.ask('put people [{name: "d"}, {name: "e"}]')).toBe('{"affected":2}');
  expect(asked.ask('put people {name: "f"}')).toBe(400);
  expect(asked.ask('put people {name: "f"} if absent')).toBe(400);
  expect(asked.ask("get people where id > 9 select id order id desc limit 1")).toBe('[{"id":9007199254740991}]');
  asked.recorded.engine.store.check();
  asked.recorded.replayed().check();
});
