/** Every case of test/cases/http.jsonl against a child process. */

import { afterAll, describe, setDefaultTimeout, test } from "bun:test";
import { groupsOf, readCases, textOf } from "./harness/case_file.ts";
import { canShare, runHttpCase } from "./harness/http_case.ts";
import { PATIENCE_MS, Shared, Spares } from "./harness/server.ts";

setDefaultTimeout(PATIENCE_MS);

/**
 * Groups, and single cases as `group: name`, whose part of the server is not built yet: each is taken off the list with the
 * part that makes it pass.
 */
const NOT_BUILT: ReadonlySet<string> = new Set(["feed", "replica"]);

const fresh = new Spares({ flags: ["--in-memory"] });
const shared = new Shared({ flags: ["--in-memory"] });

afterAll(async () => {
  await Promise.all([fresh.close(), shared.close()]);
});

for (const [group, cases] of groupsOf(readCases("http.jsonl"))) {
  describe(group, () => {
    for (const one of cases) {
      const name = textOf(one, "name");
      const declare = NOT_BUILT.has(group) || NOT_BUILT.has(`${group}: ${name}`) ? test.todo : test;
      const title = declare === test ? name : `${name} (feeds and replicas are not built)`;
      declare(title, () => runHttpCase(one, canShare(one) ? shared : fresh));
    }
  });
}
