/** What may be held and what is refused: before anything is run, so also when there is a job to take. */

import { describe, expect, test } from "bun:test";
import { Refusal } from "../../src/base/refusal.ts";
import { ANYBODY, Hall } from "./hall.ts";

const CREATE =
  "create collection jobs (kind text, run_at timestamp @sorted, until int, n int, tags [text], payload json, pos geo @geo)";
const PICKS = "create collection picks (job int, at timestamp)";

async function hall(): Promise<Hall> {
  const made = new Hall();
  await made.run(CREATE);
  await made.run(PICKS);
  // There to be taken by whatever asks for nothing.
  await made.run('put jobs {kind: "x"}');
  return made;
}

const PLACEABLE = [
  "run_at <= now()",
  "run_at < now() - 5000",
  "now() >= run_at",
  "400 + now() >= run_at",
  "now() + 1 + 2 - 3 > run_at",
  "until <= now()",
  "not (run_at > now())",
  'run_at <= now() or kind = "a"',
  'kind = "a" and (run_at <= now() or not (until < now() + 5))',
  "id in (get picks select job where at <= now())",
  "id in (get picks select job where at <= now() and job in (get jobs select n where run_at > now()))",
  "now() < now() + 1",
  "n in [1, 2]",
  "case when n = 1 then true else run_at <= now() end",
];

const UNTOLD = [
  "run_at = now()",
  "run_at != now()",
  "run_at in [now()]",
  "now() in [run_at]",
  "bucket(run_at, 60000) <= now()",
  "run_at <= bucket(now(), 60000)",
  "bucket(now(), 1d) = run_at",
  "run_at + 1000 <= now()",
  "run_at - now() < 5",
  "run_at <= now() * 2",
  "payload.at <= now()",
  "coalesce(run_at, now()) <= now()",
  "not (run_at = now())",
  'kind = "a" and bucket(run_at, 60000) <= now()',
  "now() > 5",
  "coalesce(run_at <= now(), false)",
  "id in (get picks select job where bucket(at, 60000) <= now())",
  "id in (get picks select job order at - now() limit 1)",
  "tags has now()",
];

describe("by its filter", () => {
  for (const where of PLACEABLE) {
    test(`held: ${where}`, async () => {
      const here = await hall();
      const guest = here.hold(`del jobs where (${where}) and kind = "nothing"`);
      expect([guest.said, here.held.held]).toEqual([undefined, 1]);
    });
  }
  for (const where of UNTOLD) {
    test(`refused: ${where}`, async () => {
      const here = await hall();
      for (const text of [`del jobs where ${where}`, `set jobs {n: 1} where kind = "x" or ${where}`]) {
        expect(here.hold(text).said).toBe("not_holdable");
        expect(
          here.holdBatch([
            { text: "get jobs count", params: [] },
            { text, params: [] },
          ]).said,
        ).toBe("not_holdable");
      }
      expect([await here.run("get jobs count"), here.held.held]).toEqual(['[{"count":1}]', 0]);
      // The words say what it is about; without a wait the same statement runs.
      expect(await here.run(`get jobs where ${where} count`)).not.toBe("not_holdable");
    });
  }

  test("an offset that is a parameter, and one that is none", async () => {
    const here = await hall();
    await here.run("put jobs {run_at: now() + 100}");
    const guest = here.hold("del jobs where run_at <= now() + $1 returning id", [40]);
    const text = here.hold('del jobs where run_at <= now() + $1 and kind = "none"', ["40"]);
    await here.advance(59);
    expect(guest.said).toBeUndefined();
    await here.advance(1);
    expect([guest.said, guest.answer?.atMs]).toEqual(['[{"id":2}]', here.nowMs]);
    expect(text.answers).toBeLessThanOrEqual(1);
  });

  test("what the order and the values say of the time keeps nothing from being held", async () => {
    const here = await hall();
    const guest = here.hold('set jobs {run_at: now() + 5} where kind = "none" order bucket(now(), 60000), n + 1');
    expect([guest.said, here.held.held]).toEqual([undefined, 1]);
  });
});

describe("by its kind", () => {
  const WRITES = [
    'put jobs {kind: "y"}',
    'insert into jobs {kind: "y"}',
    "create collection more (a int)",
    "create index on jobs (n) @sorted",
    "drop collection picks",
    "alter collection jobs add field more int",
    "compact",
  ];
  for (const text of WRITES) {
    test(`refused: ${text}`, async () => {
      const here = await hall();
      const before = await here.run("collections");
      expect(here.hold(text).said).toBe("not_holdable");
      const beside = [
        { text: "del jobs", params: [] },
        { text, params: [] },
      ];
      expect(here.holdBatch(beside).said).toBe("not_holdable");
      expect([await here.run("collections"), await here.run("get jobs count")]).toEqual([before, '[{"count":1}]']);
    });
  }

  test("reads are answered at once, whatever they find", async () => {
    const here = await hall();
    expect(here.hold('get jobs where kind = "none"').said).toBe("[]");
    expect(here.hold('get jobs where kind = "none" require 1').said).toBe("unmet");
    expect(here.hold("explain del jobs where run_at = now()").said).toMatch(/plan/);
    expect(here.holdBatch([{ text: "get jobs count", params: [] }]).said).toBe('{"rows":[{"count":1}]}');
    expect(here.held.held).toBe(0);
  });

  test("what fails is answered at once", async () => {
    const here = await hall();
    expect(here.hold("del nothing where run_at <= now()").said).toBe("unknown_collection");
    expect(here.hold("del jobs where nothing <= now()").said).toBe("unknown_field");
    expect(here.hold("del jobs where run_at <= now() limit").said).toBe("syntax");
    expect(here.hold("del jobs where n = $1").said).toBe("bad_parameter");
    expect(here.hold("set jobs {n: 1 / 0}").said).toBe("division_by_zero");
    expect(here.held.held).toBe(0);
  });

  test("a dry run beside a claim takes no part in whether it waits", async () => {
    const here = await hall();
    const guest = here.holdBatch([
      { text: "explain set jobs {n: 1} where run_at = now()", params: [] },
      { text: "del jobs where n = 7", params: [] },
    ]);
    await here.run("put jobs {n: 6}");
    expect(guest.said).toBeUndefined();
    await here.run("put jobs {n: 7}");
    expect(guest.said).toMatch(/{"affected":1}$/);
  });
});

test("of a batch, the line is told that cannot be held", async () => {
  const { held } = await hall();
  const { signal } = new AbortController();
  for (const text of ['put jobs {kind: "y"}', "del jobs where run_at = now()"]) {
    const batch = ["get jobs count", text].map((each) => ({ text: each, params: [] }));
    let refusal: unknown;
    try {
      await held.batch(batch, ANYBODY, 1_000, signal);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(Refusal);
    expect((refusal as Refusal).data).toMatchObject({ at: 1, completed: 0 });
  }
});
