/** What a list of columns may name, and what the columns are called. */

import { describe, expect, test } from "bun:test";
import { Asked } from "./asked.ts";

function sales(): Asked {
  return new Asked(
    "create collection sales (shop text, qty int, m json)",
    'put sales [{shop: "a", qty: 2, m: {k: 1}}, {shop: "b", qty: 3}]',
  );
}

describe("an expression needs a name", () => {
  for (const list of ["qty + 1", "1", "lower(shop)", "case when qty > 2 then 1 end", "sum(qty * 2)", "sum(qty) / 2"]) {
    test(list, () => {
      const asked = sales();
      expect(asked.ask(`get sales select ${list}`)).toBe(400);
      expect(asked.ask(`get sales select ${list} as x`)).toBeString();
    });
  }

  test("among groups", () => {
    expect(sales().ask("get sales select lower(shop), count(*) group lower(shop)")).toBe(400);
  });
});

describe("a field, a path and an aggregate of one name themselves", () => {
  for (const [list, body] of [
    ["qty, m.k, shop", '[{"qty":2,"m.k":1,"shop":"a"},{"qty":3,"m.k":null,"shop":"b"}]'],
    ["count(*), sum(qty), max(m.k)", '[{"count":2,"sum(qty)":5,"max(m.k)":1}]'],
    ["count(distinct shop)", '[{"count(distinct shop)":2}]'],
    ["first(shop by qty)", '[{"first(shop by qty)":"a"}]'],
  ] as const) {
    test(list, () => expect(sales().ask(`get sales select ${list}`)).toBe(body));
  }
});

test("the one column of an inner read needs none", () => {
  expect(sales().ask('get sales select qty where shop in (get sales select lower(shop) where shop = "a")')).toBe(
    '[{"qty":2}]',
  );
});
