/** A row past its time holds nothing: whoever takes one of its values takes it away. */

import { describe, expect, test } from "bun:test";
import { contentsOf } from "../model/recorded_engine.ts";
import { Asked } from "./asked.ts";

function sessions(): Asked {
  const asked = new Asked(
    "create collection sessions (token text @unique, mail text @unique, seen timestamp @ttl(30s))",
    'put sessions {token: "t", mail: "m", seen: now()}',
  );
  asked.recorded.clock.nowMs += 30_000;
  return asked;
}

describe("an expired row that holds several of the values written goes once", () => {
  for (const text of [
    'put sessions {token: "t", mail: "m", seen: now()}',
    'insert sessions {token: "t", mail: "m", seen: now()} if absent',
    'put sessions {token: "t", mail: "m"} if absent else set {token: "x"}',
    'put sessions [{token: "t"}, {mail: "m"}]',
  ]) {
    test(text, () => {
      const asked = sessions();
      expect(asked.ask(text)).toBeString();
      const { engine } = asked.recorded;
      engine.store.check();
      expect(contentsOf(asked.recorded.replayed())).toBe(contentsOf(engine.store));
      expect(asked.ask("get sessions where expired() or not expired() select id")).toMatch(/^\[\{"id":2\}/);
    });
  }

  test("by a set", () => {
    const asked = sessions();
    asked.ask("put sessions {seen: now()}");
    expect(asked.ask('set sessions {token: "t", mail: "m"} where id = 2')).toBe('{"affected":1}');
    expect(asked.ask("get sessions where expired() count")).toBe('[{"count":0}]');
  });
});
