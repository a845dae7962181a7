/** Runs one case of test/cases/language.jsonl (its form: test/cases/README.md) against a server on a test clock. */

import { type Members, membersOf, numberOf, optionalMembers, optionalText, textOf } from "./case_file.ts";
import { Digits, difference, type Exact, isList, isMembers, readExact, writeExact } from "./exact_json.ts";
import type { Server } from "./server.ts";
import type { Answer } from "./wire.ts";

export function stepsOf(one: Members): readonly Members[] {
  const steps = one.get("steps");
  return isList(steps) ? steps.map(membersOf) : [];
}

/** Whether the case needs a server whose clock and sweeper nothing has moved yet. */
export function movesClock(one: Members): boolean {
  return stepsOf(one).some((step) => step.has("advance_ms"));
}

/** Throws with the step and what was answered where the case does not hold. */
export async function runLanguageCase(server: Server, one: Members): Promise<void> {
  for (const [index, step] of stepsOf(one).entries()) {
    const advanceMs = numberOf(step, "advance_ms");
    if (advanceMs !== undefined) await server.advance(advanceMs);
    if (!step.has("q")) continue;
    const answer = await server.query(textOf(step, "q"), writeExact(step.get("params") ?? []));
    const wrong = judge(optionalMembers(step, "expect"), answer);
    if (wrong !== undefined) throw new Error(`step ${index}, ${textOf(step, "q")}\n  ${wrong}`);
  }
}

function judge(expect: Members | undefined, answer: Answer): string | undefined {
  const said = `answered ${answer.status} ${answer.body.slice(0, 500)}`;
  const status = expect && numberOf(expect, "error");
  if (status !== undefined) {
    if (answer.status !== status) return `expected ${status}, ${said}`;
    const piece = expect && optionalText(expect, "contains");
    const words = firstText(readExact(answer.body), "error");
    return piece === undefined || words.includes(piece) ? undefined : `expected words with "${piece}", ${said}`;
  }
  if (answer.status !== 200) return `expected success, ${said}`;
  if (expect === undefined) return undefined;
  const body = readExact(answer.body);
  const tolerance = numberOf(expect, "tol") ?? 0;
  const expected = (name: string): Exact => expect.get(name) ?? null;
  if (expect.has("rows")) return difference(expected("rows"), body, tolerance);
  if (expect.has("first")) return difference(expected("first"), firstValue(body), tolerance, "first value");
  if (expect.has("count"))
    return difference(expected("count"), countOf(body), 0, `count of ${answer.body.slice(0, 500)}`);
  return `the case expects nothing known: ${writeExact(expect)}`;
}

function firstText(body: Exact, name: string): string {
  const words = isMembers(body) ? body.get(name) : undefined;
  return typeof words === "string" ? words : "";
}

/** The first column of the first row, or a write's count. Undefined for no row. */
export function firstValue(body: Exact): Exact | undefined {
  const row = isList(body) ? body[0] : body;
  return isMembers(row) ? row.values().next().value : undefined;
}

/** Rows written; of an answer with rows how many they are, or what its one `count` says. */
function countOf(body: Exact): Exact | undefined {
  if (!isList(body)) return isMembers(body) ? body.get("affected") : undefined;
  const [row] = body;
  const counted = body.length === 1 && isMembers(row) && row.size === 1 ? row.get("count") : undefined;
  return counted ?? new Digits(String(body.length));
}
