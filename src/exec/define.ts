/** Statements about collections themselves: create, drop, alter, indexes, and what describes them. */

import { Refusal } from "../base/refusal.ts";
import type { AlterStatement, CreateIndexStatement, CreateStatement, DropStatement, Statement } from "../lang/ast.ts";
import type { Env } from "../plan/env.ts";
import { type Alteration, addField, addIndex, changeIndex, dropField, renameField } from "../schema/alter.ts";
import { createSchema } from "../schema/declare.ts";
import { describeSchema } from "../schema/describe.ts";
import { indexOf, pathText } from "../schema/find.ts";
import type { DelOp } from "../store/change.ts";
import type { Store } from "../store/store.ts";
import type { Table } from "../store/table.ts";
import { jsonPathText, jsonToValue, valueToJson } from "../value/json.ts";
import { identity } from "../value/order.ts";
import { cellToValue } from "../value/types.ts";
import type { Cell, FieldType, Value } from "../value/value.ts";
import type { Planning } from "./get.ts";
import { message, NO_CHANGE, type Plan, type Result } from "./plan.ts";
import { checkDefinition, mayRead, readable } from "./rules.ts";
import { tableOf, unknownCollection } from "./table_of.ts";
import { isDead } from "./unique.ts";

type Definition = Extract<
  Statement,
  { kind: "create" | "drop" | "alter" | "createIndex" | "collections" | "describe" | "compact" }
>;

/** Nothing is looked up before it runs: these are never kept. */
export function planDefinition(planning: Planning, statement: Definition): Plan {
  const describes = statement.kind === "collections" || statement.kind === "describe";
  if (!describes) checkDefinition(planning, statement.kind === "createIndex" ? "create index" : statement.kind);
  return {
    verb: statement.kind === "createIndex" ? "create index" : statement.kind,
    isWrite: !describes,
    params: 0,
    table: null,
    tables: planning.tables,
    inner: planning.inner,
    pick: null,
    time: null,
    line: null,
    run: (env) => run(planning, statement, env),
  };
}

function run(planning: Planning, statement: Definition, env: Env): Result {
  const { store } = planning;
  switch (statement.kind) {
    case "create":
      return create(store, statement);
    case "drop":
      return drop(planning, statement);
    case "alter":
      return alter(planning, statement, env);
    case "createIndex":
      return createIndex(planning, statement, env);
    case "collections": {
      const schemas = readable(store, planning.rules).map((table) => describeSchema(table.schema));
      return { kind: "schemas", text: `[${schemas.join(",")}]`, count: schemas.length, change: NO_CHANGE };
    }
    case "describe": {
      const table = tableOf(planning, statement.collection);
      if (!mayRead(planning.rules, table)) throw unknownCollection(planning, statement.collection);
      const { schema } = table;
      return { kind: "schemas", text: `[${describeSchema(schema)}]`, count: 1, change: NO_CHANGE };
    }
    case "compact":
      if (statement.collection === null) return message("compact", NO_CHANGE);
      return message(`compact ${tableOf(planning, statement.collection).schema.name}`, NO_CHANGE);
  }
}

function create(store: Store, statement: CreateStatement): Result {
  const name = statement.collection;
  if (store.table(name) !== undefined) {
    if (statement.ifNotExists) return message(`create ${name}: it is there already`, NO_CHANGE);
    throw new Refusal(
      "collection_exists",
      `there is a collection \`${name}\` already: create collection if not exists passes it by`,
    );
  }
  const schema = createSchema(store.nextCid, name, statement.fields);
  return message(`create ${name}`, [{ op: "create", schema }]);
}

function drop(planning: Planning, statement: DropStatement): Result {
  const name = statement.collection;
  if (statement.ifExists && planning.store.table(name) === undefined) {
    return message(`drop ${name}: it is not there`, NO_CHANGE);
  }
  const table = tableOf(planning, name);
  return message(`drop ${name}`, [{ op: "drop", cid: table.cid }]);
}

function alter(planning: Planning, statement: AlterStatement, env: Env): Result {
  const table = tableOf(planning, statement.collection);
  const { action } = statement;
  const said = `alter ${statement.collection}`;
  switch (action.kind) {
    case "add":
      return altered(said, addField(table.schema, action.field));
    case "drop":
      return altered(said, dropField(table.schema, action.field));
    case "rename":
      return altered(said, renameField(table.schema, action.field, action.to));
    case "index": {
      const alteration = changeIndex(table.schema, action.field, action.index);
      return altered(said, alteration, checkDistinct(table, action.index.kind, action.field, [], env));
    }
  }
}

function createIndex(planning: Planning, statement: CreateIndexStatement, env: Env): Result {
  const table = tableOf(planning, statement.collection);
  const { field, keys, index } = statement;
  const said = `create index on ${statement.collection} (${pathText(field, keys)})`;
  if (statement.ifNotExists && indexOf(table.schema, field, keys) !== undefined) {
    return message(`${said}: it has an index already`, NO_CHANGE);
  }
  const alteration = addIndex(table.schema, field, keys, index);
  return altered(said, alteration, checkDistinct(table, index.kind, field, keys, env));
}

function altered(said: string, { schema, from }: Alteration, gone: readonly DelOp[] = []): Result {
  return message(said, [...gone, { op: "alter", schema, from }]);
}

/**
 * An index that is to be unique, over live rows that hold a value twice: 409, naming it and two rows. Expired rows hold
 * nothing, so they go in the same change: answered are their deletes.
 */
function checkDistinct(table: Table, kind: string, field: string, keys: readonly string[], env: Env): DelOp[] {
  const slot = table.slotOf(field);
  const gone: DelOp[] = [];
  if (kind !== "unique" || slot === undefined) return gone;
  const type = table.types[slot - 1] as FieldType;
  const holders = new Map<ReturnType<typeof identity>, number>();
  table.scan(-Infinity, (row) => {
    const cell = row[slot] as Cell;
    if (isDead(table, row, env.now)) {
      gone.push({ op: "del", cid: table.cid, id: row[0] as number });
      return true;
    }
    if (cell === null) return true;
    const value = keys.length === 0 ? cellToValue(type, cell) : pathValue(cell as string, keys);
    if (value === null) return true;
    const key = identity(value);
    const holder = holders.get(key);
    if (holder !== undefined) {
      throw new Refusal(
        "unique_taken",
        `\`${pathText(field, keys)}\` cannot be unique: rows ${holder} and ${String(row[0])} both hold ${valueToJson(value).slice(0, 80)}`,
      );
    }
    holders.set(key, row[0] as number);
    return true;
  });
  return gone;
}

function pathValue(cell: string, keys: readonly string[]): Value {
  const text = jsonPathText(cell, keys);
  return text === undefined ? null : jsonToValue(text);
}
