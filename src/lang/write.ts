/** The clauses behind the heads of writes: `set`, `del` and `put`. */

import type { Assignment, CountExpr, Expr, OrderKey, Returning } from "./ast.ts";
import { once, readCount, readOrder, readRequire, readReturning, refuseClause } from "./clauses.ts";
import { readAssignments } from "./document.ts";
import { readExpression } from "./expression.ts";
import type { Reader } from "./reader.ts";

const NO_KEYS: readonly OrderKey[] = Object.freeze([]);

export interface PickClauses {
  readonly where: Expr | null;
  readonly order: readonly OrderKey[];
  readonly limit: CountExpr | null;
  readonly returning: Returning | null;
  readonly require: number | null;
}

const PICK_CLAUSES = ["where", "order", "limit", "returning", "require"];
const FOREIGN_TO_PICK = new Set(["offset", "count", "group", "having", "near", "else", "if"]);

/** The clauses of a `set` or a `del`, which pick their rows as a read would. */
export function readPickClauses(r: Reader, statement: string): PickClauses {
  let where: Expr | null = null;
  let order = NO_KEYS;
  let limit: CountExpr | null = null;
  let returning: Returning | null = null;
  let require: number | null = null;
  for (;;) {
    const word = r.peekWord();
    if (word === "") break;
    switch (word) {
      case "where":
        once(r, word, where === null);
        r.moveTo(r.at + 5);
        where = readExpression(r);
        continue;
      case "order":
        once(r, word, order === NO_KEYS);
        r.moveTo(r.at + 5);
        order = readOrder(r);
        continue;
      case "limit":
        once(r, word, limit === null);
        r.moveTo(r.at + 5);
        limit = readCount(r, word);
        continue;
      case "returning":
        once(r, word, returning === null);
        r.moveTo(r.at + 9);
        returning = readReturning(r);
        continue;
      case "require":
        once(r, word, require === null);
        r.moveTo(r.at + 7);
        require = readRequire(r);
        continue;
      default:
        break;
    }
    refuseClause(r, word, statement, FOREIGN_TO_PICK);
    break;
  }
  if (r.dialect.recording) for (const clause of PICK_CLAUSES) r.note(`\`${clause}\``);
  return { where, order, limit, returning, require };
}

export interface PutClauses {
  readonly ifAbsent: boolean;
  readonly elseSet: readonly Assignment[] | null;
  readonly require: number | null;
}

const FOREIGN_TO_PUT = new Set(["where", "order", "limit", "offset", "returning", "count", "group", "having", "near"]);

export function readPutClauses(r: Reader): PutClauses {
  let ifAbsent = false;
  let elseSet: readonly Assignment[] | null = null;
  let require: number | null = null;
  for (;;) {
    if (r.takeWord("if")) {
      once(r, "if absent", !ifAbsent);
      r.needWord("absent");
      ifAbsent = true;
      if (r.takeWord("else")) {
        r.needWord("set");
        if (!r.is(123)) r.fail("`{`");
        elseSet = readAssignments(r);
      }
    } else if (r.isWord("require")) {
      once(r, "require", require === null);
      r.moveTo(r.at + 7);
      require = readRequire(r);
    } else break;
  }
  const word = r.peekWord();
  if (word === "else") r.refuse("bad_clause", "`else set` stands right behind `if absent` alone");
  if (word !== "") refuseClause(r, word, "put", FOREIGN_TO_PUT);
  r.note("`require`");
  return { ifAbsent, elseSet, require };
}
