/** Lines: what parts them, whose turn it is, and what a write costs them. */

import { describe, expect, test } from "bun:test";
import { Json } from "../../src/value/value.ts";
import { ANYBODY, type Guest, Hall, idsIn, settled } from "./hall.ts";

const CREATE =
  "create collection jobs (kind text, run_at timestamp @sorted, priority int @sorted, owner text, n int, pos geo @geo)";
const CLAIM = "set jobs {owner: $1, run_at: now() + 60000} where run_at <= now() order run_at limit 1 returning id";

async function queue(): Promise<Hall> {
  const hall = new Hall();
  await hall.run(CREATE);
  return hall;
}

function claims(hall: Hall, count: number): Guest[] {
  return Array.from({ length: count }, (_, at) => hall.hold(CLAIM, [`w${at}`]));
}

describe("one line", () => {
  test("first come, first served: a put is a look or two and one run, whoever else waits", async () => {
    const hall = await queue();
    const guests = claims(hall, 20);
    const { looks } = hall.held;
    await hall.run("put jobs {run_at: now()}");
    expect([hall.held.held, hall.held.runs]).toEqual([19, 1]);
    expect(hall.held.looks - looks).toBeLessThanOrEqual(3);
    for (let put = 1; put < 20; put++) await hall.run("put jobs {run_at: now()}");
    expect(guests.map(({ said }) => idsIn(said))).toEqual(Array.from({ length: 20 }, (_, at) => [at + 1]));
    expect([hall.held.held, hall.held.runs]).toEqual([0, 20]);
  });

  test("four thousand wait, one job comes: one run", async () => {
    const hall = await queue();
    const guests = claims(hall, 4_000);
    const { looks } = hall.held;
    await hall.run("put jobs {run_at: now()}");
    expect([guests[0]?.answers, hall.held.held, hall.held.runs]).toEqual([1, 3_999, 1]);
    expect(hall.held.looks - looks).toBeLessThanOrEqual(3);
    for (let put = 0; put < 40; put++) {
      const rows = Array.from({ length: 100 }, () => "{run_at: now()}").join(", ");
      await hall.run(`put jobs [${rows}]`);
    }
    expect(hall.held.held).toBe(0);
    expect(guests.map(({ said }) => idsIn(said)[0])).toEqual(Array.from({ length: 4_000 }, (_, at) => at + 1));
  });

  test("a hundred jobs in one statement go to fifty that wait; or to the first ten that take ten each", async () => {
    const rows = Array.from({ length: 100 }, () => "{run_at: now()}").join(", ");
    const hall = await queue();
    const ones = claims(hall, 50);
    await hall.run(`put jobs [${rows}]`);
    expect(ones.map(({ answers }) => answers)).toEqual(ones.map(() => 1));
    expect(hall.held.runs).toBe(50);
    const other = await queue();
    const tens = Array.from({ length: 50 }, () => other.hold(CLAIM.replace("limit 1", "limit 10"), ["w"]));
    await other.run(`put jobs [${rows}]`);
    expect(tens.map(({ said }) => idsIn(said).length)).toEqual(tens.map((_, at) => (at < 10 ? 10 : 0)));
  });

  test("what parts no line: values, limits, returning, require, literals or parameters", async () => {
    const hall = await queue();
    const guests = [
      hall.hold(
        'set jobs {owner: "a", run_at: now() + 9} where kind = "x" and run_at <= now() order run_at limit 1 returning *',
      ),
      hall.hold("set jobs {owner: $2, run_at: null} where kind = $1 and run_at <= now() order run_at limit 9", [
        "x",
        "b",
      ]),
      hall.hold("set jobs {owner: $1, run_at: null} where kind = $2 and run_at <= now() order run_at require 1", [
        "c",
        "x",
      ]),
    ];
    const { looks } = hall.held;
    await hall.run('put jobs {kind: "x", run_at: now()}');
    expect(guests.map(({ answers }) => answers)).toEqual([1, 0, 0]);
    // One line: one look for the write, and the next's when the first has run.
    expect(hall.held.looks - looks).toBeLessThanOrEqual(2);
  });

  test("a wait that nothing came for cost no run and no look", async () => {
    const hall = await queue();
    hall.hold(CLAIM, ["w"], 200);
    hall.hold(`${CLAIM} require 1`, ["w"], 200);
    await hall.advance(200);
    expect(hall.held.runs).toBe(0);
    expect(hall.held.looks).toBeLessThanOrEqual(1);
  });

  test("a require that is not met keeps its place and lets the next look", async () => {
    const hall = await queue();
    const three = hall.hold(`${CLAIM.replace("limit 1", "limit 3")} require 3`, ["three"]);
    const one = hall.hold(CLAIM, ["one"]);
    const again = hall.hold(`${CLAIM.replace("limit 1", "limit 3")} require 3`, ["again"]);
    await hall.run("put jobs {run_at: now()}");
    expect([three.answers, idsIn(one.said), again.answers]).toEqual([0, [1], 0]);
    await hall.run("put jobs [{run_at: now()}, {run_at: now()}]");
    expect(hall.held.held).toBe(2);
    await hall.run("put jobs {run_at: now()}");
    expect([idsIn(three.said), again.answers]).toEqual([[2, 3, 4], 0]);
  });

  test("a require of so many and no more waits for rows to go", async () => {
    const hall = await queue();
    await hall.run("put jobs [{n: 1}, {n: 1}, {n: 1}]");
    const two = hall.hold("del jobs where n = 1 returning id require 2");
    await hall.run("put jobs {n: 1}");
    await hall.run("del jobs where id = 4");
    expect(two.said).toBeUndefined();
    await hall.run("set jobs {n: 2} where id = 2");
    expect(idsIn(two.said)).toEqual([1, 3]);
  });

  test("one that takes none keeps nobody from taking", async () => {
    const hall = await queue();
    const none = hall.hold(CLAIM.replace("limit 1", "limit 0"), ["none"]);
    const one = hall.hold(CLAIM, ["one"]);
    await hall.run("put jobs {run_at: now()}");
    expect([none.answers, idsIn(one.said)]).toEqual([0, [1]]);
  });
});

test("a claim sent in the turn of the put can tell that others are ahead of it", async () => {
  const hall = await queue();
  const held = hall.hold(CLAIM, ["held"]);
  expect(hall.held.ahead()).toBeUndefined();
  hall.engine.query("put jobs {run_at: now()}", [], ANYBODY);
  const ahead = hall.held.ahead();
  expect([ahead === undefined, held.answers]).toEqual([false, 0]);
  await ahead;
  expect(hall.engine.query(CLAIM, ["late"], ANYBODY).body).toBe("[]");
  await settled();
  expect([idsIn(held.said), hall.held.ahead()]).toEqual([[1], undefined]);
});

describe("many lines", () => {
  test("two hundred in twenty lines that would all take it: served as they came", async () => {
    const hall = await queue();
    const guests = Array.from({ length: 200 }, (_, at) =>
      hall.hold(`set jobs {owner: "w"} where owner is null and (n is null or n > ${at % 20}) limit 1 returning id`),
    );
    for (let put = 0; put < 200; put++) await hall.run("put jobs {run_at: now()}");
    expect(guests.map(({ said }) => idsIn(said)[0])).toEqual(guests.map((_, at) => at + 1));
    expect(hall.held.runs).toBe(200);
  });

  test("a write concerns the lines it meets: others do not look", async () => {
    const hall = await queue();
    const guests = Array.from({ length: 500 }, (_, at) =>
      hall.hold("set jobs {owner: $1} where kind = $2 and run_at <= now() limit 1 returning id", ["w", `k${at}`]),
    );
    const { looks } = hall.held;
    await hall.run('put jobs {kind: "k77", run_at: now()}');
    expect(idsIn(guests[77]?.said)).toEqual([1]);
    await hall.run('put jobs {kind: "k78", run_at: now() + 5000}');
    await hall.run('set jobs {n: 1} where kind = "k78"');
    expect(hall.held.looks - looks).toBeLessThanOrEqual(2);
    await hall.advance(5_000);
    expect(idsIn(guests[78]?.said)).toEqual([2]);
    expect(hall.held.looks - looks).toBeLessThanOrEqual(4);
    expect(hall.held.held).toBe(498);
  });

  test("a write concerns the lines whose lists of values it meets, and those leave nothing behind", async () => {
    const hall = await queue();
    const claim = "del jobs where kind in [$1, $2, null] and run_at <= now() and n in [1, 2] limit 1 returning id";
    const guests = Array.from({ length: 500 }, (_, at) => hall.hold(claim, [`k${at}`, `l${at}`]));
    const { looks } = hall.held;
    await hall.run('put jobs [{kind: "l77", n: 2, run_at: now()}, {kind: "l78", n: 3, run_at: now()}]');
    expect(idsIn(guests[77]?.said)).toEqual([1]);
    expect(hall.held.looks - looks).toBeLessThanOrEqual(2);
    await hall.run("put jobs {n: 1, run_at: now()}");
    expect(idsIn(guests[0]?.said)).toEqual([3]);
    for (const guest of guests) guest.leave();
    const again = hall.hold(claim, ["k77", "l77"]);
    await hall.run('put jobs {kind: "k77", n: 1, run_at: now() + 5}');
    await hall.advance(5);
    expect([idsIn(again.said), hall.held.held]).toEqual([[4], 0]);
  });

  test("a thousand couriers, one ride: the nearest is asked, and the lease it writes asks nobody", async () => {
    const hall = await queue();
    const ride =
      "set jobs {owner: $1, run_at: now() + 60000} where run_at <= now() order distance(pos, $2) limit 1 returning id";
    const guests = Array.from({ length: 1_000 }, (_, at) =>
      hall.hold(ride, [`c${at}`, new Json(`[${29 + at / 1_000},41]`)]),
    );
    const { looks } = hall.held;
    await hall.run("put jobs {run_at: now(), pos: [29.4321, 41]}");
    expect(idsIn(guests[432]?.said)).toEqual([1]);
    expect(hall.held.runs).toBe(1);
    expect(hall.held.looks - looks).toBeLessThanOrEqual(3);
    expect(hall.held.held).toBe(999);
  });

  test("three orders all nearer to A: A has its nearest, B the best of the rest", async () => {
    const hall = await queue();
    const courier = (point: string): Guest =>
      hall.hold(
        `set jobs {owner: "c", run_at: now() + 60000} where run_at <= now() order distance(pos, ${point}) limit 1 returning id`,
      );
    const b = courier("[29.5, 41]");
    const a = courier("[29, 41]");
    await hall.run(
      "put jobs [{run_at: now(), pos: [29.03, 41]}, {run_at: now(), pos: [29.01, 41]}, {run_at: now(), pos: [29.02, 41]}]",
    );
    expect([idsIn(a.said), idsIn(b.said)]).toEqual([[2], [1]]);
    expect(await hall.run("get jobs where run_at <= now() select id")).toBe('[{"id":3}]');
  });

  test("given back with a no: the next nearest has it, and who declined is not woken by it", async () => {
    const hall = await queue();
    await hall.run("alter collection jobs add field declined json");
    const courier = (name: string, point: string): Guest =>
      hall.hold(
        `set jobs {owner: "${name}", run_at: now() + 60000} where run_at <= now() and not (declined has "${name}") order distance(pos, ${point}) limit 1 returning id`,
      );
    const near = courier("near", "[29, 41]");
    const far = courier("far", "[29.5, 41]");
    await hall.run("put jobs {run_at: now(), pos: [29.1, 41]}");
    expect(idsIn(near.said)).toEqual([1]);
    const again = courier("near", "[29, 41]");
    const { runs } = hall.held;
    await hall.run('set jobs {declined: ["near"], owner: null, run_at: now()} where id = 1 and owner = "near"');
    expect([idsIn(far.said), again.answers, hall.held.runs - runs]).toEqual([[1], 0, 1]);
    await hall.run("put jobs {run_at: now(), pos: [29.2, 41]}");
    expect(idsIn(again.said)).toEqual([2]);
  });

  test("a claim whose order or filter is refused over a row is answered so, and harms nobody", async () => {
    const hall = await queue();
    await hall.run("alter collection jobs add field payload json");
    const odd = hall.hold('set jobs {owner: "odd"} where run_at <= now() order payload.n * 2 limit 1');
    const filtered = hall.hold('set jobs {owner: "odd"} where payload.n * 2 > 1 limit 1');
    const fine = hall.hold(CLAIM, ["fine"]);
    await hall.run('put jobs [{run_at: now(), payload: {"n": "x"}}, {run_at: now() + 1, payload: {"n": 1}}]');
    expect([odd.said, filtered.said, idsIn(fine.said)]).toEqual(["bad_value", "bad_value", [1]]);
    expect(hall.held.held).toBe(0);
  });
});

describe("a batch", () => {
  const set = (kind: string): string =>
    `set jobs {owner: "w"} where kind = "${kind}" and owner is null limit 1 returning id`;

  test("waits for any of its sets, runs whole, and reads anew", async () => {
    const hall = await queue();
    const guest = hall.holdBatch([
      { text: "get jobs count", params: [] },
      { text: set("a"), params: [] },
      { text: set("b"), params: [] },
    ]);
    await hall.run('put jobs {kind: "c"}');
    expect(guest.said).toBeUndefined();
    await hall.run('put jobs {kind: "b"}');
    expect(guest.said).toBe('{"rows":[{"count":2}]},{"rows":[]},{"rows":[{"id":2}]}');
  });

  test("is held by what it reads, too, where that must be so", async () => {
    const hall = await queue();
    await hall.run("create collection gates (open bool, at timestamp @sorted)");
    await hall.run('put jobs {kind: "a"}');
    const guest = hall.holdBatch([
      { text: "get gates where open and at <= now() require 1", params: [] },
      { text: set("a"), params: [] },
    ]);
    await hall.run("put gates {open: false, at: now()}");
    expect(guest.said).toBeUndefined();
    await hall.run("put gates {id: 1, open: true, at: now() + 50}");
    await hall.advance(49);
    expect(guest.said).toBeUndefined();
    await hall.advance(1);
    expect(guest.said).toMatch(/"id":1}]}$/);
  });

  test("leaves no trace while one of its requires is not met", async () => {
    const hall = await queue();
    const guest = hall.holdBatch([
      { text: set("a"), params: [] },
      { text: `${set("b")} require 1`, params: [] },
    ]);
    await hall.run('put jobs {kind: "a"}');
    expect(await hall.run("get jobs select owner")).toBe('[{"owner":null}]');
    await hall.run('put jobs {kind: "b"}');
    expect(guest.said).toBe('{"rows":[{"id":1}]},{"rows":[{"id":2}]}');
  });
});

test("a write to a collection nobody waits for puts nothing off", async () => {
  const hall = await queue();
  await hall.run("create collection others (n int)");
  hall.hold(CLAIM, ["w"]);
  let gathered = 0;
  hall.engine.gather = () => {
    gathered++;
    return () => {};
  };
  await hall.run("put others {n: 1}");
  expect([gathered, hall.held.looks]).toEqual([0, 0]);
  await hall.run("put jobs {run_at: now() + 1000}");
  expect([gathered, hall.held.looks]).toEqual([1, 0]);
});

test("writes while nobody waits are not looked at", async () => {
  const hall = await queue();
  for (let put = 0; put < 100; put++) hall.engine.query("put jobs {run_at: now()}", [], ANYBODY);
  await settled();
  expect(hall.held.looks).toBe(0);
});
