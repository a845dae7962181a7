/**
 * Bad requests to a server that is a process: every one that is HTTP is answered with 2xx, 304 or 4xx, and whatever else comes on
 * a connection costs that connection at most. In between and afterwards a plain request gets its plain answer.
 */

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { connect } from "node:net";
import { readCases, textOf } from "../harness/case_file.ts";
import { stepsOf } from "../harness/language_case.ts";
import { Server } from "../harness/server.ts";
import type { Request } from "../harness/wire.ts";
import { Random } from "../store/random.ts";
import { mutated, mutatedBody, mutatedParams } from "./mutation.ts";

setDefaultTimeout(300_000);

const { FENEC_REQUESTS: requests = "2000", FENEC_SEED: givenSeed } = process.env;
const REQUESTS = Number(requests);
/** Requests under way at once, and how many between two plain ones. */
const AT_ONCE = 8;
const ROUND = 64;

const seed = givenSeed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(givenSeed);
const texts = readCases("language.jsonl").flatMap((one) =>
  stepsOf(one).flatMap((step) => (step.has("q") ? [textOf(step, "q")] : [])),
);

const METHODS = "GET GET POST POST PATCH PUT DELETE HEAD OPTIONS TRACE PROPFIND".split(" ");
const PATHS = [
  ..."/ /query /batch /jobs /jobs/all /jobs/1 /jobs/ /collections /_health /_whoami /_metrics /_clock /__proto__".split(
    " ",
  ),
  ..."/constructor /toString /nowhere /jobs/all/all /query/ //query /%2e%2e/%2e%2e/etc/passwd /../../etc/passwd /jobs%00".split(
    " ",
  ),
  ..."/%ff /%F0%9F%98%80 /%u0041 /jobs%2Fchanges%2F /_nothing /favicon.ico /jobs?where=%00 /%ed%a0%80".split(" "),
];
const QUERIES = [
  ..."where=id%20=%201 where=id%20=%20 where=((( where=%00 where= order=id order=-nope limit=5 limit=-1 limit=1e9 offset=x".split(
    " ",
  ),
  ..."select=id,payload select=* select= count=1 id=eq.1 id=in.(1,2) id=in.( payload.a=gt.5 owner=is.null __proto__=1".split(
    " ",
  ),
  ..."constructor=eq.1 where=1&where=2 a=%E0%A4%A &&&& = ?? returning=* require=1 require=x near=pickup".split(" "),
];
const HEADERS: readonly (readonly [string, string])[] = [
  ["Fenec-Wait", "0"],
  ["Fenec-Wait", "1"],
  ["Fenec-Wait", "-1"],
  ["Fenec-Wait", "1e3"],
  ["Fenec-Wait", "abc"],
  ["Fenec-After", "x"],
  ["Fenec-After", "-5"],
  ["Idempotency-Key", "k"],
  ["Idempotency-Key", "\u00e9\u00e9"],
  ["Idempotency-Key", "x".repeat(300)],
  ["If-None-Match", '"1"'],
  ["If-None-Match", '*,,,""'],
  ["Authorization", "Bearer "],
  ["Authorization", "Bearer a.b.c"],
  ["Authorization", "Basic AAAA"],
  ["Content-Type", "multipart/form-data"],
  ["Content-Type", "text/\u00fc"],
  ["Content-Encoding", "gzip"],
  ["Accept", "application/x-nothing"],
  ["Accept-Encoding", "gzip;q=zzz"],
  ["Expect", "200-maybe"],
  ["Range", "bytes=5-1"],
  ["Origin", "null"],
  ["X-Forwarded-For", "127.0.0.1, \u00ff"],
  ["__proto__", "1"],
  ["Last-Event-ID", "NaN"],
  ["X-Long", "y".repeat(20_000)],
];

let server: Server;

beforeAll(async () => {
  server = await Server.start({ flags: ["--in-memory"] });
  await server.run("create collection plain (n int @sorted)");
  await server.run("put plain {n: 41}");
});

afterAll(() => server.kill());

/** The server as it should be, whatever was before. */
async function expectPlain(): Promise<void> {
  const answer = await server.query("get plain where n = $1 limit 1", [41]);
  expect([answer.status, answer.body]).toEqual([200, '[{"id":1,"n":41}]']);
}

/** What mutated statements do is undone now and then; the plain collection is never theirs to name. */
async function recreate(): Promise<void> {
  await server.query("drop collection if exists jobs");
  const fields =
    "payload json, run_at timestamp @sorted, owner text, attempts int, error text, pickup geo @geo, key text @unique";
  await server.run(`create collection jobs (${fields})`);
  await server.run(
    'put jobs [{payload: {to: "a"}, run_at: now(), attempts: 0}, {payload: {to: "b"}, run_at: now(), attempts: 0}]',
  );
}

/** Of those that are made bad one in forty is right after all; with these among them it is no chance how many are. */
const RIGHT: Request = { method: "POST", path: "/query", body: '{"query":"get plain"}' };
const RIGHT_SHARE = 0.05;

function badRequest(random: Random): Request {
  const text = random.chance(0.3) ? random.pick(texts) : mutated(random, random.pick(texts), texts);
  const params = mutatedParams(random, random.chance(0.5) ? [] : ['"w1"', "30000"]);
  const body = `{"query":${JSON.stringify(text)},"params":[${params.join(",")}]}`;
  const headers = Object.fromEntries(
    Array.from({ length: random.below(3) }, () => random.pick(HEADERS)).map(([name, value]) => [name, value]),
  );
  switch (random.below(6)) {
    case 0:
      return { method: "POST", path: "/query", headers, body };
    case 1:
      return { method: "POST", path: "/query", body: mutatedBody(random, body) };
    case 2: {
      const lines = Array.from({ length: 1 + random.below(4) }, () =>
        random.chance(0.6) ? body : mutatedBody(random, body),
      );
      return { method: "POST", path: "/batch", headers, body: lines.join(random.pick(["\n", "\r\n", "\n\n", ""])) };
    }
    case 3: {
      const documents = random.pick([
        params.join(","),
        `[${params.join(",")}]`,
        mutatedBody(random, '{"owner":"x","attempts":1}'),
      ]);
      return { method: "POST", path: "/jobs", headers, body: documents };
    }
    case 4: {
      const bytes = new Uint8Array(Array.from({ length: random.below(80) }, () => random.below(256)));
      return {
        method: random.pick(["POST", "PATCH"]),
        path: random.pick(["/query", "/batch", "/jobs", "/jobs/all"]),
        headers,
        body: bytes,
      };
    }
    default: {
      const method = random.pick(METHODS);
      const query = random.chance(0.5)
        ? `?${Array.from({ length: 1 + random.below(3) }, () => random.pick(QUERIES)).join("&")}`
        : "";
      const path = random.pick(PATHS) + query;
      return method === "GET" || method === "HEAD"
        ? { method, path, headers }
        : { method, path, headers, body: random.pick(["", "{}", body, "[", "null"]) };
    }
  }
}

const shown = (request: Request): string =>
  `${request.method} ${request.path} ${JSON.stringify(request.headers ?? {}).slice(0, 300)} ${String(request.body).slice(0, 1_000)}`;

test(`${REQUESTS} bad requests are answered, FENEC_SEED=${seed}`, async () => {
  const random = new Random(seed);
  const statuses = new Map<number, number>();
  for (let left = REQUESTS; left > 0; left -= ROUND) {
    await recreate();
    const round = Array.from({ length: Math.min(left, ROUND) }, () =>
      random.chance(RIGHT_SHARE) ? RIGHT : badRequest(random),
    );
    const next = round.values();
    const sender = async (): Promise<void> => {
      for (const request of next) {
        const answer = await server.ask(request).catch((error) => {
          throw new Error(`${shown(request)}: ${error}`);
        });
        const { status } = answer;
        const fine = (status >= 200 && status < 300) || status === 304 || (status >= 400 && status < 500);
        if (!fine) throw new Error(`${status} ${answer.body.slice(0, 300)} for ${shown(request)}`);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, sender));
    await expectPlain();
  }
  // Some were right, most were not.
  expect(statuses.get(200) ?? 0).toBeGreaterThan(REQUESTS / 50);
  expect(statuses.get(400) ?? 0).toBeGreaterThan(REQUESTS / 10);
});

/** Sends bytes, then nothing more, and waits until the server has done with the connection. */
function sendRaw(bytes: Uint8Array): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = connect({ port: server.port, host: "127.0.0.1" });
  // A server that waits for the rest of a body may: this side does not.
  const late = setTimeout(() => socket.destroy(), 2_000);
  socket.on("connect", () => {
    socket.write(bytes);
    socket.end();
  });
  socket.on("data", () => {});
  socket.on("error", () => {});
  socket.on("close", () => {
    clearTimeout(late);
    resolve();
  });
  return promise;
}

function rawBytes(random: Random): Uint8Array {
  const body = '{"query":"get plain"}';
  const whole = `POST /query HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const claim =
    '{"query":"set jobs {owner: \\"w\\"} where run_at <= now() and owner = \\"nobody\\" limit 1 returning *"}';
  const held = `POST /query HTTP/1.1\r\nHost: x\r\nFenec-Wait: 30000\r\nContent-Length: ${claim.length}\r\n\r\n${claim}`;
  const junk = (): string =>
    String.fromCharCode(...Array.from({ length: 1 + random.below(60) }, () => random.below(256)));
  const pieces = [
    () => junk(),
    () => whole + whole + junk(),
    () => whole + junk() + whole,
    () => held + whole,
    () => held + junk(),
    () => whole.slice(0, random.below(whole.length)),
    () =>
      whole.replace(
        /Content-Length: \d+/,
        `Content-Length: ${random.pick(["-1", "99999", "1e3", "0x5", "", "5, 6", "999999999999999999999"])}`,
      ),
    () =>
      whole
        .replace("Content-Length: 21\r\n", "Transfer-Encoding: chunked\r\n")
        .replace(body, random.pick(["zz\r\n", "5\r\nabc", "ffffffffff\r\n", "0\r\n\r\n0\r\n\r\n", "-5\r\nabcde\r\n"])),
    () => whole.replace("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n"),
    () => whole.replace("HTTP/1.1", random.pick(["HTTP/0.9", "HTTP/9.9", "HTTP", "", "http/1.1", "HTTP/1.0"])),
    () =>
      whole.replace(
        "Host: x",
        random.pick([
          `X: ${"z".repeat(90_000)}`,
          "Host",
          ": x",
          "Ho st: x",
          "Host: a\r\nHost: b",
          "X\0: y",
          "A: b\nC: d",
        ]),
      ),
    () =>
      whole.replace(
        "/query",
        random.pick([`/${"q".repeat(70_000)}`, "", "query", "/query\0", "http://x/query", "*", "/query HTTP/1.1 "]),
      ),
    () => whole.replace("POST", random.pick(["get", "", "P\0ST", "POST POST", "M".repeat(10_000), "\r\n\r\nPOST"])),
    () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    () => "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    () => `${"GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(50)}${junk()}`,
  ];
  return Buffer.from(random.pick(pieces)(), "latin1");
}

test(`garbage on ${REQUESTS / 5} connections, FENEC_SEED=${seed}`, async () => {
  const random = new Random(seed + 1);
  await recreate();
  for (let left = REQUESTS / 5; left > 0; left -= ROUND) {
    const round = Array.from({ length: Math.min(left, ROUND) }, () => rawBytes(random));
    await Promise.all(round.map(sendRaw));
    await expectPlain();
  }
  expect((await server.ask({ path: "/_health" })).status).toBe(200);
  // Nobody who has gone is left waiting.
  expect(await server.metric("fenec_held_claims")).toBe(0);
});
