/** The worked example of docs/access.md: its policy, and what each token can and cannot do under it. */

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { blocksOf, stepsOf } from "../docs/page.ts";
import { judge } from "../docs/page_run.ts";
import { PATIENCE_MS, PROJECT, Scratch, Server } from "../harness/server.ts";
import { signToken } from "../harness/token.ts";

setDefaultTimeout(PATIENCE_MS);

const SECRET = "a secret of more than thirty-two bytes";
const page = readFileSync(join(PROJECT, "docs", "access.md"), "utf8");
const blocks = blocksOf(page);
const scratch = new Scratch();
let server: Server;

beforeAll(async () => {
  const policy = blocks.filter(({ info }) => info === "policy");
  expect(policy).toHaveLength(1);
  writeFileSync(join(scratch.path, "policy"), policy[0]?.text ?? "");
  writeFileSync(join(scratch.path, "secret"), SECRET);
  server = await Server.start({
    flags: [
      "--in-memory",
      "--test-clock",
      "--token",
      "root",
      "--jwt-secret-file",
      join(scratch.path, "secret"),
      "--policy",
      join(scratch.path, "policy"),
    ],
  });
});

afterAll(async () => {
  await server.kill();
  scratch[Symbol.dispose]();
});

/** The claims the page gives each of them; the text names those of the first of a kind. */
const CLAIMS: Readonly<Record<string, Record<string, string>>> = {
  shop: { sub: "shop", role: "producer", queue: "mail" },
  studio: { sub: "studio", role: "producer", queue: "video" },
  w1: { sub: "w1", role: "worker", queue: "mail" },
  w2: { sub: "w2", role: "worker", queue: "mail" },
};

function headersOf(name: string): Record<string, string> {
  const claims = CLAIMS[name];
  if (claims === undefined) return { Authorization: `Bearer ${name}` };
  const exp = Math.floor(Date.now() / 1_000) + 3_600;
  return { Authorization: `Bearer ${signToken(JSON.stringify({ ...claims, exp }), SECRET)}` };
}

test("gives the claims it says", () => {
  for (const name of ["shop", "w1"]) {
    const shown = JSON.stringify(CLAIMS[name]).replaceAll('":"', '": "').replaceAll('","', '", "');
    expect(page).toContain(`\`${shown}\``);
  }
});

test("its tokens can claim, extend, fail and ack the jobs of their queue, and nothing else", async () => {
  const wrong: string[] = [];
  let statements = 0;
  for (const { info, line, text } of blocks) {
    const [kind, who = ""] = info.split(" ");
    if (kind !== "statements") continue;
    // As a page of its own; lines are counted from its fence.
    for (const step of stepsOf(`\`\`\`fenecql\n${text}\n\`\`\`\n`)) {
      if (step.kind === "later") {
        const body = JSON.stringify({ advance_ms: step.ms });
        const answer = await server.ask({ method: "POST", path: "/_clock", body, headers: headersOf("root") });
        expect(answer.status).toBe(200);
      } else if (step.kind === "statement") {
        const { statement } = step;
        statements++;
        // No statement here is one of those that only must not fail.
        expect(statement.answer).toBeDefined();
        const words = judge(statement, await server.query(statement.text, statement.params, headersOf(who)));
        if (words !== undefined) wrong.push(`line ${line + statement.line - 2}, ${who}: ${statement.text}\n  ${words}`);
      }
    }
  }
  expect(wrong.join("\n")).toBe("");
  expect(statements).toBeGreaterThan(30);
});
