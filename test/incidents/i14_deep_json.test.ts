/**
 * A few thousand nested arrays in a request body overran the parser's stack and ended the process.
 * https://github.com/ggml-org/llama.cpp/pull/27434, https://github.com/oatpp/oatpp/pull/1109
 *
 * Right: json nests to a stated depth (64), expressions too (512). One level more is refused with 400, nothing is stored and
 * the next request is answered as if nothing had been; what is let in is stored, answered, logged and recovered.
 */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { PATIENCE_MS, Scratch } from "../harness/server.ts";
import { CREATE, type Queue, startInMemory, startOnDisk } from "./queue.ts";

setDefaultTimeout(PATIENCE_MS);

const JSON_DEPTH = 64;
const EXPRESSION_DEPTH = 512;
const TOO_DEEP = [JSON_DEPTH + 1, 100, 1_200, 3_000, 10_000, 45_000, 1_000_000];

const arrays = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
const objects = (depth: number): string => `${'{"a":'.repeat(depth - 1)}{}${"}".repeat(depth - 1)}`;
const SHAPES = [
  ["arrays", arrays],
  ["objects", objects],
] as const;

describe("past the depth", () => {
  let queue: Queue;
  beforeAll(async () => {
    queue = await startInMemory();
  });
  afterAll(() => queue.server.kill());

  /** The server goes on, and holds nothing of what it refused. */
  async function expectUnharmed(): Promise<void> {
    expect((await queue.server.query("get jobs count")).body).toBe('[{"count":0}]');
  }

  for (const [shape, nested] of SHAPES) {
    for (const depth of TOO_DEEP) {
      test(`${depth} nested ${shape}, as a parameter, a literal and a document`, async () => {
        const text = nested(depth);
        for (const answer of [
          await queue.put(text),
          await queue.server.query(`put jobs {payload: ${text}, run_at: now()}`),
          await queue.server.ask({ method: "POST", path: "/jobs", body: `{"payload":${text}}` }),
          await queue.server.ask({ method: "POST", path: "/query", body: text }),
        ]) {
          expect(answer.status).toBe(400);
        }
        await expectUnharmed();
      });
    }
  }

  test("the refusal names the depth", async () => {
    expect((await queue.put(arrays(1_200))).body).toContain(String(JSON_DEPTH));
    const filter = `${"(".repeat(10_000)}id = 1${")".repeat(10_000)}`;
    expect((await queue.server.query(`get jobs where ${filter}`)).body).toContain(String(EXPRESSION_DEPTH));
  });

  for (const [what, filter] of [
    ["10 000 brackets", `${"(".repeat(10_000)}id = 1${")".repeat(10_000)}`],
    ["100 000 nots", `${"not ".repeat(100_000)}id = 1`],
    ["100 000 signs", `id = ${"- ".repeat(100_000)}1`],
    ["a chain of 100 000 ors", new Array(100_000).fill("id = 1").join(" or ")],
    ["100 000 inner lists", `id in ${"[".repeat(100_000)}`],
    ["10 000 cases", `id = ${"case when true then ".repeat(10_000)}1${" end".repeat(10_000)}`],
  ] as const) {
    test(`a filter of ${what}`, async () => {
      expect((await queue.server.query(`get jobs where ${filter}`)).status).toBe(400);
      await expectUnharmed();
    });
  }

  test.skipIf(!existsSync("/proc/self/statm"))("memory comes back to what it was (read from /proc)", async () => {
    const body = `{"query":"put jobs {payload: $1}","params":[${arrays(1_000_000)}]}`;
    const residentMb = (): number => {
      const pages = readFileSync(`/proc/${queue.server.pid}/statm`, "utf8").split(" ")[1];
      return (Number(pages) * 4_096) / 1_048_576;
    };
    const send = async (): Promise<void> => {
      expect((await queue.server.ask({ method: "POST", path: "/query", body })).status).toBe(400);
    };
    for (let round = 0; round < 20; round += 1) await send();
    const before = residentMb();
    for (let round = 0; round < 100; round += 1) await send();
    // 100 bodies of 2 MB kept would be 200 MB, as trees many times that.
    expect(residentMb() - before).toBeLessThan(100);
  });
});

test("up to the depth: stored, answered, logged and recovered", async () => {
  using scratch = new Scratch();
  const kept = SHAPES.map(([, nested]) => nested(JSON_DEPTH));
  {
    await using queue = await startOnDisk(scratch.path);
    await queue.server.run(CREATE);
    for (const text of kept) {
      expect((await queue.put(text)).status).toBe(200);
      expect((await queue.server.query(`put jobs {payload: ${text}, run_at: now()}`)).status).toBe(200);
    }
    const { body } = await queue.server.query("get jobs");
    for (const text of kept) expect(body.split(`"payload":${text},`).length).toBe(3);
  }
  await using queue = await startOnDisk(scratch.path);
  const { body } = await queue.server.query("get jobs");
  for (const text of kept) expect(body.split(`"payload":${text},`).length).toBe(3);
});
