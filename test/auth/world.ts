/** An engine with rows as the judge knows them, and a token whose rules are read from the policy's text. */

import { SignJWT } from "jose";
import { Keys } from "../../src/auth/keys.ts";
import { parsePolicy } from "../../src/auth/policy.ts";
import { type ScopedToken, Tokens } from "../../src/auth/tokens.ts";
import { Refusal } from "../../src/base/refusal.ts";
import { TestClock } from "../../src/clock/clock.ts";
import type { Outcome, RequestContext } from "../../src/engine/contract.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { FUNCTION_NAMES } from "../../src/plan/functions.ts";
import { Json } from "../../src/value/value.ts";
import { memoryEngine, OPEN_CONTEXT } from "../http/parts.ts";
import { NOW_MS, type Statement } from "./chance.ts";
import type { Claims, JudgedRow, JudgedTable, Plain, Verdict } from "./judge.ts";

const SECRET = "a secret that has thirty-two bytes and some";
const HOUR_MS = 3_600_000;

/** The token as the server reads it. */
export async function tokenOf(policy: string, claims: Claims): Promise<ScopedToken> {
  const tokens = new Tokens(Keys.fromSecret(SECRET), parsePolicy(policy, FUNCTION_NAMES), {
    requireExp: true,
    maxAgeSeconds: null,
  });
  const payload = { ...Object.fromEntries(claims), exp: (NOW_MS + HOUR_MS) / 1_000 };
  const bearer = await new SignJWT(payload).setProtectedHeader({ alg: "HS256" }).sign(new TextEncoder().encode(SECRET));
  return tokens.verify(bearer, NOW_MS);
}

export function contextOf(scope: ScopedToken): RequestContext {
  return { scope, idempotencyKey: null, requestHash: "" };
}

export class World {
  readonly clock = new TestClock(NOW_MS);
  readonly engine: Engine = memoryEngine(this.clock);

  root(text: string, params: readonly unknown[] = []): Outcome {
    const values = params.map((param) =>
      typeof param === "object" && param !== null ? new Json(JSON.stringify(param)) : (param as null | number | string),
    );
    return this.engine.query(text, values, OPEN_CONTEXT);
  }

  /** Puts rows under their ids; the next id is `nextId` whatever they are. */
  fill(name: string, rows: readonly JudgedRow[], nextId: number): void {
    const documents = rows.map((row) => ({ id: row.id, ...Object.fromEntries([...row.cells].map(bare)) }));
    this.root(`put ${name} $1`, [[...documents, { id: nextId - 1 }]]);
    this.root(`del ${name} where id = $1`, [nextId - 1]);
  }

  /** What a statement was answered: the body, or the refusal with all that it says. */
  ask({ text, params }: Statement, scope: ScopedToken): string {
    try {
      return this.engine.query(text, params, contextOf(scope)).body;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return `${error.code}: ${error.message} ${JSON.stringify(error.data)}`;
    }
  }

  rows(name: string): string[] {
    return bodyRows(this.root(`get ${name}`).body);
  }
}

function bare([name, cell]: readonly [string, Plain]): readonly [string, unknown] {
  return [name, typeof cell === "object" && cell !== null && "ms" in cell ? cell.ms : cell];
}

/** The rows of a body, each as the text of its values. */
export function bodyRows(body: string): string[] {
  const rows = JSON.parse(body) as readonly Readonly<Record<string, unknown>>[];
  return rows.map((row) => JSON.stringify(Object.values(row)));
}

export function judgedRows(table: JudgedTable): string[] {
  return table.rows
    .toSorted((a, b) => a.id - b.id)
    .map((row) => shown([row.id, ...table.fields.map(({ name }) => row.cells.get(name) ?? null)]));
}

/** Values as an answer shows them. */
function shown(values: readonly Plain[]): string {
  return JSON.stringify(
    values.map((value) =>
      typeof value === "object" && value !== null && "ms" in value
        ? new Date(value.ms).toISOString().replace(".000Z", "Z")
        : value,
    ),
  );
}

/** Whether an answer is what the judge says it is. */
export function agrees(answer: string, verdict: Verdict): boolean {
  if ("refused" in verdict) return answer.startsWith(`${verdict.refused}: `);
  if ("affected" in verdict) return answer === `{"affected":${verdict.affected}}`;
  if ("sum" in verdict) return answer === `[{"s":${JSON.stringify(verdict.sum)},"c":${verdict.count}}]`;
  if ("count" in verdict) {
    return (
      answer === `[{"count":${verdict.count}}]` || new RegExp(`"(rows|count): ${verdict.count}"}\\]$`).test(answer)
    );
  }
  return answer.startsWith("[") && bodyRows(answer).join() === verdict.rows.map(shown).join();
}
