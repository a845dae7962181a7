/** Every case of test/cases/language.jsonl by `POST /query`. */

import { afterAll, describe, setDefaultTimeout, test } from "bun:test";
import { groupsOf, readCases, textOf } from "./harness/case_file.ts";
import { movesClock, runLanguageCase } from "./harness/language_case.ts";
import { PATIENCE_MS, Server, Spares } from "./harness/server.ts";

setDefaultTimeout(PATIENCE_MS);

const OPTIONS = { flags: ["--in-memory", "--test-clock"] };

/** A case that moves the clock has a server to itself: a sweeper some way through its round would show. */
const fresh = new Spares(OPTIONS);
/** The others come one after another on this one, its collections dropped between them. */
let shared: Server | undefined;

afterAll(async () => {
  await Promise.all([fresh.close(), shared?.kill()]);
});

async function retire(): Promise<void> {
  await shared?.kill();
  shared = undefined;
}

for (const [group, cases] of groupsOf(readCases("language.jsonl"))) {
  describe(group, () => {
    for (const one of cases) {
      test(textOf(one, "name"), async () => {
        if (movesClock(one)) {
          const server = await fresh.take();
          try {
            await runLanguageCase(server, one);
          } finally {
            await server.kill();
          }
          return;
        }
        shared ??= await Server.start(OPTIONS);
        try {
          await runLanguageCase(shared, one);
          await shared.dropAll();
        } catch (error) {
          // Whatever went wrong in it must not reach the next case.
          await retire();
          throw error;
        }
      });
    }
  });
}
