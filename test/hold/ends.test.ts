/** How a wait ends, other than by a job: each way as it is told, at once, and with exactly one answer. */

import { expect, test } from "bun:test";
import type { RunningClock, Scheduled } from "../../src/clock/clock.ts";
import type { RequestContext, Scope } from "../../src/engine/contract.ts";
import { HeldClaims } from "../../src/hold/held_claims.ts";
import { ANYBODY, engineOn, type Guest, Hall, idsIn, START_MS, settled } from "./hall.ts";

const CREATE = "create collection jobs (kind text, run_at timestamp @sorted, owner text, n int)";
const CLAIM = 'set jobs {owner: "w", run_at: now() + 1000} where run_at <= now() order run_at limit 1 returning id';

async function queue(): Promise<Hall> {
  const hall = new Hall();
  await hall.run(CREATE);
  return hall;
}

function once(guest: Guest): Guest["answer"] {
  expect(guest.answers).toBe(1);
  return guest.answer;
}

function saidBy(guests: readonly Guest[]): (string | undefined)[] {
  return guests.map((guest) => guest.said);
}

test("the wait is over: what the last run gave, at its very millisecond", async () => {
  const hall = await queue();
  const guests = [
    hall.hold(CLAIM, [], 300),
    hall.hold('set jobs {owner: "w"} where run_at <= now()', [], 300),
    hall.hold(`${CLAIM} require 1`, [], 300),
    hall.holdBatch(
      [
        { text: "get jobs count", params: [] },
        { text: CLAIM, params: [] },
      ],
      300,
    ),
  ];
  await hall.advance(299);
  expect(saidBy(guests)).toEqual([undefined, undefined, undefined, undefined]);
  await hall.advance(1);
  expect(saidBy(guests)).toEqual(["[]", '{"affected":0}', "unmet", '{"rows":[{"count":0}]},{"rows":[]}']);
  for (const guest of guests) expect(once(guest)?.atMs).toBe(START_MS + 300);
  expect([hall.held.held, hall.held.runs]).toEqual([0, 0]);
});

test("a job that comes due in the millisecond the wait ends wins", async () => {
  const hall = await queue();
  await hall.run("put jobs {run_at: now() + 300}");
  const guests = [hall.hold(CLAIM, [], 300), hall.hold(CLAIM, [], 300)];
  await hall.advance(1_000);
  expect(saidBy(guests)).toEqual(['[{"id":1}]', "[]"]);
  expect(once(guests[0] as Guest)?.atMs).toBe(START_MS + 300);
});

test("the moments of one long jump come in their order, each at its own time", async () => {
  const hall = await queue();
  await hall.run("put jobs {run_at: now() + 100}");
  const guests = [hall.hold(CLAIM, [], 50), hall.hold(CLAIM, [], 200), hall.hold(CLAIM, [], 5_000)];
  await hall.advance(100_000);
  expect(guests.map((guest) => [guest.said, (once(guest)?.atMs ?? 0) - START_MS])).toEqual([
    ["[]", 50],
    ['[{"id":1}]', 100],
    ['[{"id":1}]', 1_100],
  ]);
});

test("its collection is dropped: 404 at once; dropped and made anew, it waits on", async () => {
  const hall = await queue();
  const first = Array.from({ length: 20 }, () => hall.hold(CLAIM));
  await hall.run("drop collection jobs");
  expect(new Set(saidBy(first))).toEqual(new Set(["unknown_collection"]));
  for (const guest of first) expect(once(guest)?.atMs).toBe(START_MS);
  await hall.run(CREATE);
  const second = hall.hold(CLAIM);
  await hall.together("drop collection jobs", CREATE);
  expect([second.said, hall.held.held]).toEqual([undefined, 1]);
  await hall.run("put jobs {run_at: now()}");
  expect(second.said).toBe('[{"id":1}]');
});

test("its collection is altered: held on where the claim still fits, answered where it does not", async () => {
  const hall = await queue();
  const kept = hall.hold(CLAIM);
  const misfit = hall.hold("del jobs where n > 3 returning n");
  const untold = hall.hold('set jobs {owner: "w"} where until <= now()', [], 1_000);
  expect(untold.said).toBe("unknown_field");
  await hall.run("alter collection jobs add field until timestamp");
  await hall.run("create index on jobs (kind) @hash");
  expect([kept.said, misfit.said]).toEqual([undefined, undefined]);
  await hall.run("alter collection jobs drop field n");
  expect([kept.said, misfit.said]).toEqual([undefined, "unknown_field"]);
  const reader = hall.hold('set jobs {owner: "w"} where until <= now() returning id');
  await hall.run("alter collection jobs drop field until");
  expect(once(reader)?.said).toBe("unknown_field");
  await hall.run("put jobs {run_at: now() + 5}");
  await hall.advance(5);
  expect(once(kept)?.said).toBe('[{"id":1}]');
});

test("a row of another shape is written in the turn of the alter", async () => {
  const hall = await queue();
  const guest = hall.hold(CLAIM);
  await hall.together(
    "alter collection jobs drop field kind",
    'put jobs [{owner: "2026", run_at: now() + 20}, {owner: "nobody", n: 9, run_at: now() + 10}]',
  );
  expect(guest.said).toBeUndefined();
  await hall.advance(10);
  expect(once(guest)?.said).toBe('[{"id":2}]');
});

test("the collection an inner read reads is dropped", async () => {
  const hall = await queue();
  await hall.run("create collection picks (job int)");
  await hall.run("put jobs {n: 1}");
  const guest = hall.hold('set jobs {owner: "w"} where id in (get picks select job) and owner is null');
  await hall.run("drop collection picks");
  expect(once(guest)?.said).toBe("unknown_collection");
});

function tokenUntil(expiresAtMs: number): RequestContext {
  const scope: Scope = {
    rules: {
      of: () => ({
        read: [null],
        insert: [],
        update: [{ fields: null, where: null, transition: false, reach: null }],
        delete: [null],
        expired: [],
        appendOnly: false,
      }),
    },
    claims: new Map(),
    expiresAtMs,
    subject: "",
    rights: "",
  };
  return { ...ANYBODY, scope };
}

test("its token has expired: 401 when its turn comes, and the job goes to the next", async () => {
  const hall = await queue();
  const expired = hall.hold(CLAIM, [], 30_000, tokenUntil(START_MS + 100));
  const good = hall.hold(CLAIM, [], 30_000, tokenUntil(START_MS + 10_000));
  await hall.advance(200);
  await hall.run("put jobs {run_at: now()}");
  expect([once(expired)?.said, once(good)?.said]).toEqual(["unauthorized", '[{"id":1}]']);
});

test("an expired token takes nothing at the end of its wait either, and keeps nobody from looking", async () => {
  const hall = await queue();
  const expired = hall.hold(CLAIM, [], 500, tokenUntil(START_MS + 100));
  const good = hall.hold(CLAIM, [], 30_000, tokenUntil(START_MS + 10_000));
  await hall.advance(499);
  expired.leave();
  await hall.run("put jobs {run_at: now() + 20}");
  await hall.advance(20);
  expect([once(expired)?.said, once(good)?.said]).toEqual(["[]", '[{"id":1}]']);
});

test("the server stops: everybody is answered with what it last found, and nobody is held any more", async () => {
  const hall = await queue();
  const guests = [hall.hold(CLAIM), hall.hold(`${CLAIM} require 1`), hall.hold('del jobs where kind = "a"')];
  hall.held.release();
  await settled();
  expect(saidBy(guests)).toEqual(["[]", "unmet", '{"affected":0}']);
  const late = hall.hold(CLAIM);
  expect([once(late)?.said, hall.held.held]).toEqual(["[]", 0]);
  await hall.run("put jobs {run_at: now()}");
  for (const guest of guests) once(guest);
});

test("a job put in the turn the server stops is still taken by who waits for it", async () => {
  const hall = await queue();
  const guest = hall.hold(CLAIM);
  hall.engine.query("put jobs {run_at: now()}", [], ANYBODY);
  hall.held.release();
  await settled();
  expect(once(guest)?.said).toBe('[{"id":1}]');
});

test("its client goes: its place is the next one's, also when it goes with the job on its way", async () => {
  const hall = await queue();
  const gone = hall.hold(CLAIM);
  const next = hall.hold(CLAIM);
  hall.engine.query("put jobs {run_at: now()}", [], ANYBODY);
  gone.leave();
  await settled();
  expect([next.said, hall.held.held, hall.held.runs]).toEqual(['[{"id":1}]', 0, 1]);
  expect(await hall.run("get jobs select owner")).toBe('[{"owner":"w"}]');
});

test("five hundred dead before a live one: the first job is the live one's, for one run", async () => {
  const hall = await queue();
  const dead = Array.from({ length: 500 }, () => hall.hold(CLAIM));
  const live = hall.hold(CLAIM);
  for (const guest of dead) guest.leave();
  await hall.run("put jobs {run_at: now()}");
  expect([live.said, hall.held.runs, hall.held.held]).toEqual(['[{"id":1}]', 1, 0]);
});

test("a client that is gone already is not held", async () => {
  const hall = await queue();
  const gone = new AbortController();
  gone.abort();
  const answer = hall.held.query({ text: CLAIM, params: [] }, ANYBODY, 1_000, gone.signal);
  expect(answer instanceof Promise).toBe(false);
  expect(hall.held.held).toBe(0);
});

function keyed(key: string, hash = "h"): RequestContext {
  return { scope: null, idempotencyKey: key, requestHash: hash };
}

test("tries of one request under one key are answered together, and take one job", async () => {
  const hall = await queue();
  const tries = Array.from({ length: 3 }, () => hall.hold(CLAIM, [], 30_000, keyed("k")));
  const other = hall.hold(CLAIM, [], 30_000, keyed("k", "another body"));
  const behind = hall.hold(CLAIM);
  await hall.run("put jobs {run_at: now()}");
  expect(saidBy(tries)).toEqual(['[{"id":1}]', '[{"id":1}]', '[{"id":1}]']);
  expect([once(other)?.said, behind.said]).toEqual(["key_reused", undefined]);
  await hall.run("put jobs {run_at: now()}");
  expect(idsIn(behind.said)).toEqual([2]);
  expect(idsIn(hall.hold(CLAIM, [], 30_000, keyed("k")).said)).toEqual([1]);
});

test("a try that did not wait answers the one that does", async () => {
  const hall = await queue();
  const held = hall.hold(CLAIM, [], 30_000, keyed("k"));
  hall.engine.query("put jobs {run_at: now()}", [], ANYBODY);
  hall.engine.query(CLAIM, [], keyed("k"));
  await settled();
  expect([once(held)?.said, hall.held.held]).toEqual(['[{"id":1}]', 0]);
  expect(await hall.run("get jobs where run_at <= now() count")).toBe('[{"count":0}]');
});

/** A clock whose time can be set ahead, as the system's can. */
class SettableClock implements RunningClock {
  wallMs = START_MS;
  runningMs = 0;
  readonly #calls: { due: () => boolean; run: () => void }[] = [];

  now(): number {
    return this.wallMs;
  }
  elapsed(): number {
    return this.runningMs;
  }
  at(atMs: number, run: () => void): Scheduled {
    return this.#call(() => this.wallMs >= atMs, run);
  }
  after(delayMs: number, run: () => void): Scheduled {
    const untilMs = this.runningMs + delayMs;
    return this.#call(() => this.runningMs >= untilMs, run);
  }
  async pass(runningMs: number, setAheadMs = 0): Promise<void> {
    this.runningMs += runningMs;
    this.wallMs += runningMs + setAheadMs;
    for (const call of this.#calls.filter(({ due }) => due())) {
      this.#calls.splice(this.#calls.indexOf(call), 1);
      call.run();
    }
    await settled();
  }
  #call(due: () => boolean, run: () => void): Scheduled {
    const call = { due, run };
    this.#calls.push(call);
    return {
      cancel: () => {
        const place = this.#calls.indexOf(call);
        if (place >= 0) this.#calls.splice(place, 1);
      },
    };
  }
}

test("the clock is set ahead an hour: leases lapse at once, waits last as long as they were to", async () => {
  const clock = new SettableClock();
  const engine = engineOn(clock);
  const held = new HeldClaims(engine, clock);
  engine.query(CREATE, [], ANYBODY);
  const answers: string[] = [];
  const gone = new AbortController().signal;
  const hold = (text: string): void => {
    const answer = held.query({ text, params: [] }, ANYBODY, 30_000, gone);
    if (answer instanceof Promise) void answer.then(({ body }) => answers.push(body));
  };
  hold('del jobs where kind = "none" returning id');
  hold(CLAIM);
  engine.query("put jobs {run_at: now() + 1800000}", [], ANYBODY);
  await clock.pass(10_000);
  expect(answers).toEqual([]);
  await clock.pass(1, 3_600_000);
  expect(answers).toEqual(['[{"id":1}]']);
  await clock.pass(19_998);
  expect([answers.length, held.held]).toEqual([1, 1]);
  await clock.pass(1);
  expect([answers[1], held.held]).toEqual(["[]", 0]);
});
