/**
 * Keys over sockets: many tries of one request at once, one that is re-sent after the server was killed before, while or
 * after it was answered, and one whose first try is still held. One run, one answer.
 */

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { PATIENCE_MS, Scratch, Server } from "../harness/server.ts";
import type { Answer, Request } from "../harness/wire.ts";

setDefaultTimeout(PATIENCE_MS * 2);

const CREATE = "create collection jobs (run_at timestamp @sorted, owner text, attempts int)";
const CLAIM =
  "set jobs {owner: $1, run_at: now() + 600000, attempts: attempts + 1} where run_at <= now() order run_at limit 10 returning id, attempts";

function claimOf(owner: string, key: string, headers: Record<string, string> = {}): Request {
  const body = JSON.stringify({ query: CLAIM, params: [owner] });
  return { method: "POST", path: "/query", body, headers: { "Idempotency-Key": key, ...headers } };
}

const replayed = (answer: Answer): boolean => answer.headers.get("idempotent-replayed") === "true";

async function fill(server: Server, jobs: number): Promise<void> {
  const documents = Array.from({ length: jobs }, () => ({ run_at: 1_000, attempts: 0 }));
  await server.run("put jobs $1", [documents]);
}

/** Jobs that were claimed more often than once; there must be none. */
async function twice(server: Server): Promise<string> {
  return (await server.query("get jobs where attempts > 1")).body;
}

let server: Server;

beforeAll(async () => {
  server = await Server.start({ flags: ["--in-memory"] });
  await server.run(CREATE);
});

afterAll(() => server.kill());

test("64 tries at once are one run and one answer", async () => {
  await fill(server, 1_000);
  const answers = await Promise.all(Array.from({ length: 64 }, () => server.ask(claimOf("w", "sixty-four"))));
  expect(new Set(answers.map(({ status, body }) => `${status} ${body}`)).size).toBe(1);
  expect(answers.filter((answer) => !replayed(answer))).toHaveLength(1);
  expect((await server.query('get jobs where owner = "w" count')).body).toBe('[{"count":10}]');
  expect(await twice(server)).toBe("[]");
});

test("64 tries at once of a batch, a put by its route, and an update by its", async () => {
  const batch: Request = {
    method: "POST",
    path: "/batch",
    body: `{"query":"put jobs {owner: \\"batch\\", attempts: 0}"}\n{"query":"get jobs where owner = \\"batch\\" count"}`,
    headers: { "Idempotency-Key": "batch" },
  };
  const put = {
    method: "POST",
    path: "/jobs",
    body: '{"owner":"rest","attempts":0}',
    headers: { "Idempotency-Key": "rest" },
  };
  const patch = {
    method: "PATCH",
    path: "/jobs?owner=rest",
    body: '{"attempts":1}',
    headers: { "Idempotency-Key": "patch" },
  };
  for (const [request, status, body] of [
    [batch, 200, '{"ok":2,"results":[{"affected":1},{"rows":[{"count":1}]}]}'],
    [put, 201, '{"inserted":1}'],
    [patch, 200, '{"updated":1}'],
  ] as const) {
    const answers = await Promise.all(Array.from({ length: 64 }, () => server.ask(request)));
    expect(new Set(answers.map((answer) => `${answer.status} ${answer.body}`))).toEqual(new Set([`${status} ${body}`]));
    expect(answers.filter((answer) => !replayed(answer))).toHaveLength(1);
  }
  expect((await server.query('get jobs where owner = "rest" count')).body).toBe('[{"count":1}]');
});

test("a try whose client is gone is answered to the next one", async () => {
  await fill(server, 20);
  const lost = server.open(claimOf("lost", "lost"));
  await lost.answer;
  lost.drop();
  const again = await server.ask(claimOf("lost", "lost"));
  expect(replayed(again)).toBe(true);
  expect(again.body).toBe((await lost.answer).body);
  // The wait asked for is no part of the request.
  expect((await server.ask(claimOf("lost", "lost", { "Fenec-Wait": "1000" }))).body).toBe(again.body);
  expect((await server.ask(claimOf("another", "lost"))).status).toBe(422);
  expect(await twice(server)).toBe("[]");
});

test("while the first try is held, the second waits with it, and both have the one answer", async () => {
  await server.run("set jobs {run_at: null}");
  const wait = { "Fenec-Wait": "20000" };
  const first = server.open(claimOf("held", "held", wait));
  const second = server.open(claimOf("held", "held", wait));
  while ((await server.metric("fenec_held_claims")) !== 2) await Bun.sleep(5);
  await fill(server, 1);
  const answers = await Promise.all([first.answer, second.answer]);
  expect(answers[0]?.body).toBe(answers[1]?.body as string);
  expect(answers[0]?.body).toContain('"attempts":1');
  expect(answers.filter((answer) => !replayed(answer))).toHaveLength(1);
});

test("a claim re-sent after the server was killed takes no second page", async () => {
  using scratch = new Scratch();
  const flags = ["--data", scratch.path];
  let killed = await Server.start({ flags });
  await killed.run(CREATE);
  await fill(killed, 400);
  const heard = new Map<string, string>();
  for (let round = 0; round < 5; round++) {
    // Some are answered before the kill, some are under way, some have not begun.
    const tries = Array.from({ length: 8 }, (_, n) => {
      const key = `${round}-${n}`;
      return killed.ask(claimOf(`w${key}`, key)).then(
        ({ status, body }) => {
          if (status === 200) heard.set(key, body);
        },
        () => undefined,
      );
    });
    if (round % 2 === 0) await Promise.race(tries);
    await killed.kill();
    await Promise.all(tries);
    killed = await Server.start({ flags });
    for (let n = 0; n < 8; n++) {
      const key = `${round}-${n}`;
      const again = await killed.ask(claimOf(`w${key}`, key));
      expect(again.status).toBe(200);
      const before = heard.get(key);
      if (before === undefined) heard.set(key, again.body);
      else expect({ key, body: again.body, replayed: replayed(again) }).toEqual({ key, body: before, replayed: true });
    }
  }
  const ids = [...heard.values()].flatMap((body) => [...body.matchAll(/"id":(\d+)/g)].map(([, id]) => id));
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toHaveLength(400);
  expect(await twice(killed)).toBe("[]");
  await killed.kill();
});
