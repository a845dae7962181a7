/** Runs the FenecQL of a documentation page on a server and tells where its answers are not the ones shown. */

import { type Exact, isList, readExact, writeExact } from "../harness/exact_json.ts";
import { firstValue } from "../harness/language_case.ts";
import type { Server } from "../harness/server.ts";
import type { Answer } from "../harness/wire.ts";
import { type Statement, stepsOf } from "./page.ts";

/** Every statement whose answer differs, in words with its line; empty when the page tells the truth. */
export async function runPage(server: Server, page: string): Promise<readonly string[]> {
  const wrong: string[] = [];
  await server.dropAll();
  for (const step of stepsOf(page)) {
    if (step.kind === "later") await server.advance(step.ms);
    else if (step.kind === "fresh") await server.dropAll();
    else {
      const { statement } = step;
      const words = judge(statement, await server.query(statement.text, statement.params));
      if (words !== undefined) wrong.push(`line ${statement.line}: ${statement.text}\n  ${words}`);
    }
  }
  return wrong;
}

/** What is wrong with an answer; undefined where it is the one shown. */
export function judge({ answer: shown }: Statement, answer: Answer): string | undefined {
  const got = `got ${answer.status} ${answer.body.slice(0, 500)}`;
  const refused = /^refused: (\d+)(?:$|, )/.exec(shown ?? "");
  if (refused !== null) return answer.status === Number(refused[1]) ? undefined : `shown ${shown}, ${got}`;
  if (answer.status !== 200) return `to succeed, ${got}`;
  if (shown === undefined) return undefined;
  return spellings(readExact(answer.body)).some((text) => shown === text || shown.startsWith(`${text}: `))
    ? undefined
    : `shown ${shown}, ${got}`;
}

/** What a page may write for an answer. */
function spellings(body: Exact): readonly string[] {
  const value = firstValue(body);
  if (value === undefined) return isList(body) ? ["no row", "[]"] : [];
  const json = writeExact(value);
  return [json, ...(typeof value === "string" && value !== "" ? [value] : []), writeExact(body)];
}
