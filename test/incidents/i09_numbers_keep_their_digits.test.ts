/**
 * Job ids past 2^53 came back as other ids, since a payload had gone through doubles on its way.
 * https://github.com/contribsys/faktory/issues/395, https://github.com/riverqueue/riverui/issues/593
 *
 * Right: a payload is answered digit for digit and key for key as it was sent, by a claim, a read, a stream and after a
 * restart, or the put is refused and says where.
 */

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { membersOf } from "../harness/case_file.ts";
import { EventStream } from "../harness/event_stream.ts";
import { Digits, readExact, writeExact } from "../harness/exact_json.ts";
import { PATIENCE_MS, Scratch } from "../harness/server.ts";
import { CREATE, idsOf, jobsOf, startOnDisk, startOnTestClock } from "./queue.ts";

setDefaultTimeout(PATIENCE_MS);

const NEGATIVE_ZERO = '{"n":-0}';
const KEPT = [
  '{"id":3889108265204450030}',
  '{"id":1970670598291982290}',
  '{"n":9007199254740993}',
  NEGATIVE_ZERO,
  '{"n":0.1}',
  '{"n":1E2}',
  '{"n":1.50}',
  '{"n":123456789012345678901234567890}',
  '{"10":1,"2":2,"b":3}',
  '{"b":{"10":[-0.0,1e-7],"2":null},"__proto__":{"x":1}}',
  "-9223372036854775808",
  '"\u{1f600} é"',
];
/** No number of the language, so refused in a statement's text; by a parameter it is kept like the others. */
const PAST_64_BITS = '{"n":123456789012345678901234567890}';

/** With the key the refusal has to name. */
const REFUSED = [
  ['{"huge":1e400}', "huge"],
  ['{"in":{"deep":[0,{"huge":-1e999}]}}', "huge"],
  ['{"twice":1,"twice":2}', "twice"],
] as const;

describe("kept to the digit", () => {
  test("in a claim, a read and a stream, before and after a restart", async () => {
    using scratch = new Scratch();
    {
      await using queue = await startOnDisk(scratch.path);
      await queue.server.run(CREATE);
      for (const payload of KEPT) expect((await queue.put(payload)).body).toBe('{"affected":1}');
      const { body } = await queue.server.query("get jobs");
      for (const payload of KEPT) expect(body).toContain(`"payload":${payload},`);

      const stream = new EventStream(queue.server.port, { path: "/jobs/changes" });
      const seed = await stream.next(3_000);
      stream.close();
      for (const payload of KEPT) expect(seed?.data).toContain(`"payload":${payload},`);

      const claimed = jobsOf(
        await queue.server.run(
          'set jobs {owner: "w:1", run_at: now() + 30000} where run_at <= now() order run_at limit 100 returning *',
        ),
      );
      expect(claimed.map(({ payload }) => writeExact(payload))).toEqual(
        KEPT.map((text) => writeExact(readExact(text))),
      );
      await queue.server.kill();
    }
    await using queue = await startOnDisk(scratch.path);
    const { body } = await queue.server.query("get jobs");
    for (const payload of KEPT) expect(body).toContain(`"payload":${payload},`);
  });

  test("as a literal of the statement", async () => {
    await using queue = await startOnTestClock();
    const literals = KEPT.filter((payload) => payload !== PAST_64_BITS && payload !== NEGATIVE_ZERO);
    for (const payload of literals) {
      await queue.server.run(`put jobs {payload: ${payload}, run_at: now(), attempts: 0}`);
    }
    const payloads = (await queue.all()).map(({ payload }) => writeExact(payload));
    expect(payloads).toEqual(literals.map((text) => writeExact(readExact(text))));
    expect((await queue.server.query(`put jobs {payload: ${PAST_64_BITS}}`)).status).toBe(400);
  });

  test("a negative zero as a literal of the statement", async () => {
    await using queue = await startOnTestClock();
    await queue.server.run(`put jobs {payload: ${NEGATIVE_ZERO}}`);
    expect((await queue.server.query("get jobs select payload")).body).toBe(`[{"payload":${NEGATIVE_ZERO}}]`);
  });

  test("a filter finds the number itself and not its neighbours", async () => {
    await using queue = await startOnTestClock();
    for (const id of ["3889108265204450029", "3889108265204450030", "3889108265204450031"]) {
      await queue.put(`{"id":${id}}`);
    }
    const text = "get jobs where payload.id = ";
    expect(idsOf(jobsOf(await queue.server.run(`${text}3889108265204450030`)))).toEqual([2]);
    expect(idsOf(jobsOf(await queue.server.run(`${text}$1`, "[3889108265204450030]")))).toEqual([2]);
    await queue.server.run("create index on jobs (payload.id) @hash");
    expect(idsOf(jobsOf(await queue.server.run(`${text}3889108265204450030`)))).toEqual([2]);
  });
});

describe("refused, with the place", () => {
  for (const [payload, key] of REFUSED) {
    test(payload, async () => {
      await using queue = await startOnTestClock();
      for (const answer of [
        await queue.put(payload),
        await queue.server.ask({ method: "POST", path: "/jobs", body: `{"payload":${payload}}` }),
      ]) {
        expect(answer.status).toBe(400);
        expect(membersOf(readExact(answer.body)).get("error")).toContain(key);
      }
      const literal = await queue.server.query(`put jobs {payload: ${payload}, run_at: now()}`);
      expect(literal.status).toBe(400);
      expect(membersOf(readExact(literal.body)).get("line")).toEqual(new Digits("1"));
      expect(await queue.all()).toEqual([]);
    });
  }
});
