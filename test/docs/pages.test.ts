/** Every FenecQL block of the documentation, statement by statement, with the answers it shows. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { PATIENCE_MS, PROJECT, Server } from "../harness/server.ts";
import { stepsOf } from "./page.ts";
import { runPage } from "./page_run.ts";

setDefaultTimeout(PATIENCE_MS);

const OPTIONS = { flags: ["--in-memory", "--test-clock"] };
/** Pages that would say nothing without their blocks. */
const MUST_RUN = ["docs/fenecql.md", "docs/queues.md"];

const pages = ["README.md", ...new Glob("docs/**/*.md").scanSync({ cwd: PROJECT })].sort();

function read(page: string): string {
  return readFileSync(join(PROJECT, page), "utf8");
}

describe("pages", () => {
  for (const page of pages) {
    const steps = stepsOf(read(page));
    if (steps.length === 0 && !MUST_RUN.includes(page)) continue;
    test(page, async () => {
      expect(steps.filter(({ kind }) => kind === "statement").length).toBeGreaterThan(0);
      const server = await Server.start(OPTIONS);
      try {
        expect((await runPage(server, read(page))).join("\n")).toBe("");
      } finally {
        await server.kill();
      }
    });
  }
});

describe("a page that is wrong is found out", () => {
  let server: Server;
  beforeAll(async () => {
    server = await Server.start(OPTIONS);
  });
  afterAll(() => server.kill());

  const TRUE = [
    "create collection t (n int, s text)",
    'put t {n: 1, s: "a -- b"}            -- → 1: one row',
    "-- with [7]",
    "set t {n: $1}",
    "  where n = 1                          -- → 1",
    "get t select n                         -- → 7",
    "get t select s                         -- → a -- b",
    'get t                                  -- → [{"id":1,"n":7,"s":"a -- b"}]',
    "get t where n = 1                      -- → no row",
    "del t where n = 1 require 1            -- → refused: 412, there is none",
    'put t {n: now() - timestamp("2000-01-01")}',
  ];
  const FALSE: readonly (readonly [number, string])[] = [
    [1, 'put t {n: 1, s: "a -- b"}            -- → 2: one row'],
    [1, "put t {nosuch: 1}"],
    [5, "get t select n                         -- → 70"],
    [5, "get t select n                         -- → no row"],
    [6, "get t select s                         -- → a"],
    [7, 'get t                                  -- → [{"id":1,"n":7}]'],
    [8, "get t where n = 7                      -- → no row"],
    [9, "del t where n = 1 require 1            -- → refused: 404, there is none"],
    [9, "del t where n = 1                      -- → refused: 412, there is none"],
  ];

  const asPage = (lines: readonly string[]): string => `\`\`\`fenecql\n${lines.join("\n")}\n\`\`\`\n`;

  test("and one that is right is not", async () => {
    expect(await runPage(server, asPage(TRUE))).toEqual([]);
  });

  for (const [line, text] of FALSE) {
    test(text, async () => {
      expect(await runPage(server, asPage(TRUE.with(line, text)))).not.toEqual([]);
    });
  }

  test("the clock moves where the page says so, and a fresh block knows nothing of those before", async () => {
    const page = [
      "```fenecql",
      "create collection t (at timestamp)",
      "put t {at: now()}",
      "-- 20 s later",
      "get t select now() - at as age  -- → 20000",
      "-- 3 min later",
      "get t select now() - at as age  -- → 200000",
      "```",
      "```fenecql fresh",
      "get t                           -- → refused: 404",
      "```",
      "",
    ].join("\n");
    expect(await runPage(server, page)).toEqual([]);
  });
});
