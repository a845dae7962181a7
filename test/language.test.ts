/** Every case of test/cases/language.jsonl by `POST /query`. */

import { afterAll, describe, setDefaultTimeout, test } from "bun:test";
import { groupsOf, readCases, textOf } from "./harness/case_file.ts";
import { movesClock, runLanguageCase } from "./harness/language_case.ts";
import { PATIENCE_MS, Shared, Spares } from "./harness/server.ts";

setDefaultTimeout(PATIENCE_MS);

const OPTIONS = { flags: ["--in-memory", "--test-clock"] };

/** A case that moves the clock has a server to itself: a sweeper some way through its round would show. */
const fresh = new Spares(OPTIONS);
const shared = new Shared(OPTIONS);

afterAll(async () => {
  await Promise.all([fresh.close(), shared.close()]);
});

for (const [group, cases] of groupsOf(readCases("language.jsonl"))) {
  describe(group, () => {
    for (const one of cases) {
      test(textOf(one, "name"), async () => {
        const pool = movesClock(one) ? fresh : shared;
        const server = await pool.take();
        let well = false;
        try {
          await runLanguageCase(server, one);
          well = true;
        } finally {
          await pool.giveBack(server, well);
        }
      });
    }
  });
}
