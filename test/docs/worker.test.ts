/** The workers that docs/queues.md shows, run as programs over a queue. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { membersOf } from "../harness/case_file.ts";
import { type Exact, isList, readExact } from "../harness/exact_json.ts";
import { PATIENCE_MS, PROJECT, Scratch, Server } from "../harness/server.ts";
import { blocksOf } from "./page.ts";

setDefaultTimeout(PATIENCE_MS);

const CREATE = "create collection jobs (payload json, run_at timestamp @sorted, owner text, attempts int, error text)";
const CLIENT = JSON.stringify(join(PROJECT, "src", "client", "index.ts"));
const WORK = "async function work(payload) { if (payload.bad) throw new Error('it was bad'); }\n";
const DEADLINE_MS = 15_000;

const programs = blocksOf(readFileSync(join(PROJECT, "docs", "queues.md"), "utf8")).filter(({ info }) => info === "ts");

/** Asks until the answer is so; a worker is another process and nothing tells when it is through. */
async function until(server: Server, text: string, answer: string): Promise<void> {
  const end = Date.now() + DEADLINE_MS;
  let last = "";
  while (Date.now() < end) {
    last = (await server.query(text)).body;
    if (last === answer) return;
  }
  throw new Error(`${text}: ${last}, and not ${answer}`);
}

function only(rows: Exact): ReadonlyMap<string, Exact> {
  if (!isList(rows) || rows.length !== 1) throw new Error("not one row");
  return membersOf(rows[0]);
}

describe("a worker of docs/queues.md", () => {
  let server: Server;
  const scratch = new Scratch();
  beforeAll(async () => {
    server = await Server.start({ flags: ["--in-memory"] });
  });
  afterAll(async () => {
    await server.kill();
    scratch[Symbol.dispose]();
  });

  test("is there twice", () => {
    expect(programs.length).toBe(2);
  });

  for (const { line, text } of programs) {
    test(`at line ${line} acks what it could do and gives back what it could not`, async () => {
      await server.dropAll();
      await server.run(CREATE);
      await server.run("put jobs $1", [Array.from({ length: 25 }, () => ({ payload: { to: "ada" }, attempts: 0 }))]);
      await server.run('put jobs {payload: {"bad": true}, attempts: 3}');
      await server.run("set jobs {run_at: now()}");
      const file = join(scratch.path, `worker-${line}.ts`);
      const here = text.replaceAll("127.0.0.1:8080", `127.0.0.1:${server.port}`).replaceAll('"fenec/client"', CLIENT);
      expect(here).toContain(CLIENT);
      expect(here).toContain(String(server.port));
      writeFileSync(file, here + WORK);
      const program = Bun.spawn([process.execPath, file], { stdin: "ignore", stdout: "inherit", stderr: "inherit" });
      try {
        await until(server, "get jobs where error is null count", '[{"count":0}]');
        const bad = only(readExact((await server.query("get jobs where run_at > now()")).body));
        expect(bad.get("owner")).toBeNull();
        expect(String(bad.get("error"))).toContain("it was bad");
        expect((await server.query("get jobs count")).body).toBe('[{"count":1}]');
      } finally {
        program.kill("SIGKILL");
        await program.exited;
      }
    });
  }
});
