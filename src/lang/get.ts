/** Reads: `get jobs where ...`, `get a, b from jobs ...`, with their clauses in any order. */

import type { CountExpr, Expr, GetStatement, OrderKey, SelectItem } from "./ast.ts";
import { once, readCount, readGroup, readItems, readOrder, readRequire, refuseClause } from "./clauses.ts";
import { readExpression, readSum } from "./expression.ts";
import type { Reader } from "./reader.ts";

const NO_ITEMS: readonly SelectItem[] = Object.freeze([]);
const NO_KEYS: readonly OrderKey[] = Object.freeze([]);
const NO_GROUP: readonly Expr[] = Object.freeze([]);

const CLAUSES = ["select", "where", "near", "order", "limit", "offset", "count", "group", "having", "require"];
/** Clauses of other statements, which cannot be the start of a next one. */
const FOREIGN = new Set(["returning"]);

/** From behind the verb on. */
export function readGet(r: Reader): GetStatement {
  let select = NO_ITEMS;
  if (startsList(r)) {
    select = readItems(r);
    r.needWord("from");
  } else if (r.isWord("from") && r.startsName(r.behindWord())) {
    r.moveTo(r.at + 4);
  }
  const at = r.at;
  const collection = r.name("a collection's name");

  let where: Expr | null = null;
  let near: GetStatement["near"] = null;
  let order = NO_KEYS;
  let limit: CountExpr | null = null;
  let offset: CountExpr | null = null;
  let count = false;
  let group = NO_GROUP;
  let having: Expr | null = null;
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
      case "select":
        once(r, word, select === NO_ITEMS);
        r.moveTo(r.at + 6);
        select = readItems(r);
        continue;
      case "count":
        once(r, word, !count);
        r.moveTo(r.at + 5);
        count = true;
        continue;
      case "offset":
        once(r, word, offset === null);
        r.moveTo(r.at + 6);
        offset = readCount(r, word);
        continue;
      case "require":
        once(r, word, require === null);
        r.moveTo(r.at + 7);
        require = readRequire(r);
        continue;
      case "group":
        once(r, word, group === NO_GROUP);
        r.moveTo(r.at + 5);
        group = readGroup(r);
        continue;
      case "having":
        once(r, word, having === null);
        r.moveTo(r.at + 6);
        having = readExpression(r);
        continue;
      case "near":
        once(r, word, near === null);
        r.moveTo(r.at + 4);
        near = readNear(r);
        continue;
      default:
        break;
    }
    refuseClause(r, word, "get", FOREIGN);
    break;
  }
  if (r.dialect.recording) for (const clause of CLAUSES) r.note(`\`${clause}\``);
  return {
    kind: "get",
    collection,
    at,
    select,
    where,
    near,
    order,
    limit,
    offset,
    count,
    group,
    having,
    require,
  };
}

function readNear(r: Reader): NonNullable<GetStatement["near"]> {
  const at = r.at;
  const field = r.name("a field's name");
  const point = readSum(r);
  if (r.isWord("ef")) r.refuse("unsupported", "`ef` of `near` is not supported: a walk over points is always exact");
  r.takeWord("exact");
  return { field, point, at };
}

/** Words that can follow the first item of a list, but no collection's name. */
const BEHIND_ITEM = new Set(["from", "as", "and", "or", "is", "in", "has"]);

/** Does a list of columns come next, and not the collection? */
function startsList(r: Reader): boolean {
  const first = r.peekWord();
  if (first === "") return r.code() !== -1;
  const end = r.fieldEnd();
  const behind = r.behindWord();
  const next = r.codeAt(behind);
  const second = r.wordAt(behind);
  if (second === "") {
    // An operator, a comma, a parenthesis, the dot of a path.
    return next !== -1 && next !== 59 && next !== 41 && next !== 125;
  }
  if (first === "from" && r.codeAt(end) !== 46) {
    // `get from jobs`; but `get from from jobs` reads a column called `from`.
    const third = r.wordAt(r.tokenBehind(behind));
    return second === "from" && third !== "" && !CLAUSES.includes(third);
  }
  if (first === "case" && second === "when") return true;
  if (first === "not") return !CLAUSES.includes(second);
  return BEHIND_ITEM.has(second);
}
