/**
 * A chain over one collection, immutable: every step gives a new one, so a chain can be kept and built on. It ends as
 * text and parameters (`toFenecQL`, `toInsert`, ...) or, bound to a server, by being run (`rows`, `update`, ...). The same
 * chain always gives the same text, so the server's plan cache knows it again.
 */

import { type Condition, conditionOf, either, isPlainObject, renderAll, sealed } from "./condition.ts";
import { refuse, wrongAnswer } from "./error.ts";
import { Aliased, aggregateText, Binder, Expr, Inc, Piece, pathName, Raw, simpleName } from "./expression.ts";
import type { AggregateText, Document, FieldName, FilterValue, LooseFields, Patch, Picked, Row } from "./schema.ts";

/** A statement's text and the values of its `$1`, `$2`, ... */
export type Statement = readonly [text: string, params: readonly unknown[]];

export interface SendOptions {
  /** 1 to 255 printable ASCII characters. The same request under the same key is run once. */
  readonly idempotencyKey?: string | undefined;
  /** Milliseconds to be held at the server while a `set` or `del` would write nothing; at most 30 000 count. */
  readonly wait?: number | undefined;
  /** Gives the request up. */
  readonly signal?: AbortSignal | undefined;
}

export interface InsertOptions extends SendOptions {
  /** Passes over documents whose id or unique value a row holds. */
  readonly ifAbsent?: boolean | undefined;
  /** Rows that must be written, else nothing is and the answer is a 412. */
  readonly require?: number | undefined;
}

export interface WriteOptions extends SendOptions {
  /** Allows a write that names no rows: the whole collection. */
  readonly all?: boolean | undefined;
  readonly require?: number | undefined;
}

type Returning = boolean | readonly string[] | undefined;
interface ReturningOption {
  readonly returning?: Returning;
}

/** What a statement answered. `seq` and `replayed` come with writes. */
export type Answer<R = Readonly<Record<string, unknown>>> =
  | { readonly rows: readonly R[]; readonly seq?: number | null; readonly replayed?: boolean }
  | { readonly kind: "affected"; readonly count: number; readonly seq: number | null; readonly replayed: boolean }
  | Readonly<Record<string, unknown>>;

/** What one statement of a batch answered: `{affected}`, `{rows}` or `{message}`. */
export interface BatchResult {
  readonly affected?: number;
  readonly rows?: readonly Readonly<Record<string, unknown>>[];
  readonly message?: string;
}

export interface BatchAnswer {
  readonly results: readonly BatchResult[];
  readonly seq: number | null;
  readonly replayed: boolean;
}

/** A statement for a batch: a chain (its read), a text, or a text with parameters (`toUpdate`, `toInsert`, ... give it). */
export type Batchable = string | Statement | { toFenecQL(): Statement };

/** Where a chain is run. */
export interface Database {
  run(text: string, params?: readonly unknown[], options?: SendOptions): Promise<Answer>;
  batch(statements: readonly Batchable[], options?: SendOptions): Promise<BatchAnswer>;
}

export type Operator =
  | "="
  | "!="
  | "<"
  | "<="
  | ">"
  | ">="
  | "~"
  | "eq"
  | "ne"
  | "neq"
  | "lt"
  | "lte"
  | "le"
  | "gt"
  | "gte"
  | "ge"
  | "like"
  | "contains";

interface Distance {
  readonly from: readonly number[];
  readonly lt?: number;
  readonly lte?: number;
  readonly gt?: number;
  readonly gte?: number;
}

/** `{ gte: 1, lt: 5 }`: all of them must hold. */
export interface Operators<V> {
  readonly eq?: V;
  readonly ne?: V;
  readonly neq?: V;
  readonly lt?: V;
  readonly lte?: V;
  readonly le?: V;
  readonly gt?: V;
  readonly gte?: V;
  readonly ge?: V;
  readonly like?: string;
  readonly contains?: string;
  readonly has?: V extends readonly (infer Item)[] ? Item : unknown;
  readonly in?: readonly V[];
  readonly not?: V | Operators<V>;
  readonly within?: readonly number[];
  readonly distance?: Distance;
  readonly "="?: V;
  readonly "!="?: V;
  readonly "<"?: V;
  readonly "<="?: V;
  readonly ">"?: V;
  readonly ">="?: V;
  readonly "~"?: string;
}

/** Fields with what they must be. */
export type FieldConditions<F> = { readonly [N in FieldName<F>]?: FilterValue<F, N> | Operators<FilterValue<F, N>> };

type Item<F> = FieldName<F> | "*" | AggregateText | Expr | Aliased;
type OrderName<F, R> = FieldName<F> | AggregateText | (keyof R & string);

interface OrderKey {
  readonly key: string | Raw;
  readonly descending: boolean;
  readonly collate: string | undefined;
}

interface State {
  readonly collection: string;
  readonly items: readonly (string | Expr | Aliased)[];
  readonly conditions: readonly Condition[];
  readonly group: readonly (string | Expr)[];
  readonly near: { readonly field: string; readonly point: unknown; readonly exact: boolean } | undefined;
  readonly order: readonly OrderKey[];
  readonly limit: number | undefined;
  readonly offset: number | undefined;
  readonly require: number | undefined;
}

const COLLATIONS: readonly string[] = ["und", "tr"];

/** A chain that is bound to no server: for its text, or for `bind`. */
export function from<F = LooseFields>(collection: string): Query<F> {
  return new Query<F>(undefined, {
    collection: simpleName(collection, "a collection's name"),
    items: [],
    conditions: [],
    group: [],
    near: undefined,
    order: [],
    limit: undefined,
    offset: undefined,
    require: undefined,
  });
}

export class Query<F, R = Row<F>> extends Piece {
  readonly #database: Database | undefined;
  readonly #state: State;

  constructor(database: Database | undefined, state: State) {
    super();
    this.#database = database;
    this.#state = state;
  }

  get collection(): string {
    return this.#state.collection;
  }

  /** Whether the chain names an order of its own. */
  get ordered(): boolean {
    return this.#state.order.length > 0;
  }

  /** The server the chain is bound to. */
  get database(): Database {
    return (
      this.#database ?? refuse("not-bound", `from("${this.collection}") is bound to no server: use bind, or db.from`)
    );
  }

  /** The same chain, run at another server. */
  bind(database: Database): Query<F, R> {
    return new Query<F, R>(database, this.#state);
  }

  #with<Next = R>(change: Partial<State>): Query<F, Next> {
    return new Query<F, Next>(this.#database, { ...this.#state, ...change });
  }

  /** The columns to answer; none, or `*` among them: every field. A later call replaces. */
  select<const Items extends readonly Item<F>[]>(items: Items): Query<F, Picked<F, Items>>;
  select<const Items extends readonly Item<F>[]>(...items: Items): Query<F, Picked<F, Items>>;
  select(...items: readonly unknown[]): Query<F, never> {
    const list = items.flat() as unknown as readonly (string | Expr | Aliased)[];
    const checked = list.map((item) => (typeof item === "string" && item !== "*" ? itemName(item) : item));
    return this.#with<never>({ items: checked.includes("*") ? [] : checked });
  }

  /** Another condition that must hold. */
  where(condition: Condition | Raw | FieldConditions<F>): Query<F, R>;
  where<N extends FieldName<F>>(field: N, value: FilterValue<F, N> | Operators<FilterValue<F, N>>): Query<F, R>;
  where<N extends FieldName<F>>(field: N, operator: Operator, value: FilterValue<F, N>): Query<F, R>;
  where<N extends FieldName<F>>(field: N, operator: "in", values: readonly FilterValue<F, N>[]): Query<F, R>;
  where<N extends FieldName<F>>(field: N, operator: "has", value: unknown): Query<F, R>;
  where(...args: readonly unknown[]): Query<F, R> {
    return this.#with({ conditions: [...this.#state.conditions, conditionOf(args)] });
  }

  /** Everything so far, or this. */
  orWhere(condition: Condition | Raw | FieldConditions<F>): Query<F, R>;
  orWhere<N extends FieldName<F>>(field: N, value: FilterValue<F, N> | Operators<FilterValue<F, N>>): Query<F, R>;
  orWhere<N extends FieldName<F>>(field: N, operator: Operator, value: FilterValue<F, N>): Query<F, R>;
  orWhere<N extends FieldName<F>>(field: N, operator: "in", values: readonly FilterValue<F, N>[]): Query<F, R>;
  orWhere<N extends FieldName<F>>(field: N, operator: "has", value: unknown): Query<F, R>;
  orWhere(...args: readonly unknown[]): Query<F, R> {
    return this.#with({ conditions: [either(this.#state.conditions, conditionOf(args))] });
  }

  /** As `where`, for a chain of somebody else's: what it holds so far stays together, whatever a `raw` in it says. */
  restrict(condition: Condition | Raw): Query<F, R> {
    return this.#with({ conditions: [sealed(this.#state.conditions), conditionOf([condition])] });
  }

  /** The keys of the groups: fields, paths, `bucket(...)`, or the name of a column. */
  group(...keys: readonly (string | Expr | readonly (string | Expr)[])[]): Query<F, R> {
    const list = keys.flat() as readonly (string | Expr)[];
    return this.#with({ group: list.map((key) => (typeof key === "string" ? pathName(key) : key)) });
  }

  /** Rows by their distance from a point `[longitude, latitude]`. A later call replaces. */
  near(
    field: FieldName<F>,
    point: readonly number[] | Float32Array,
    options: { readonly exact?: boolean } = {},
  ): Query<F, R> {
    return this.#with({ near: { field: simpleName(field, "a field"), point, exact: options.exact === true } });
  }

  /** Another key of the order; its direction is always written. An expression comes by `raw`. */
  order(key: OrderName<F, R> | Raw, direction = "asc", options: { readonly collate?: string } = {}): Query<F, R> {
    const folded = typeof direction === "string" ? direction.toLowerCase() : direction;
    if (folded !== "asc" && folded !== "desc")
      refuse("bad-direction", `\`${String(direction)}\` is neither asc nor desc`);
    const { collate } = options;
    if (collate !== undefined && !COLLATIONS.includes(collate)) {
      refuse("unknown-collation", `unknown collation \`${collate}\`; known are ${COLLATIONS.join(" ")}`);
    }
    const added: OrderKey = { key: key instanceof Raw ? key : itemName(key), descending: folded === "desc", collate };
    return this.#with({ order: [...this.#state.order, added] });
  }

  /** A later call replaces. */
  limit(rows: number): Query<F, R> {
    return this.#with({ limit: whole(rows, "limit", "bad-limit") });
  }

  /** Rows to pass over; for reads only. */
  offset(rows: number): Query<F, R> {
    // 0 is none: `offset 0` is never written.
    return this.#with({ offset: whole(rows, "offset", "bad-offset") || undefined });
  }

  /** Rows the read must answer, else a 412. A write takes it as an option. */
  require(rows: number): Query<F, R> {
    return this.#with({ require: whole(rows, "require", "bad-require") });
  }

  /** The read as text and parameters. */
  toFenecQL(): Statement {
    return this.#read("rows");
  }

  /** The read `first` makes. */
  toFirst(): Statement {
    return this.#with({ limit: 1 }).#read("rows");
  }

  /** The read `count` makes. */
  toCount(): Statement {
    return this.#read("count");
  }

  /** The read behind the word `explain`. */
  toExplain(): Statement {
    const [text, params] = this.#read("rows");
    return [`explain ${text}`, params];
  }

  toInsert(documents: Document<F> | readonly Document<F>[], options: InsertOptions = {}): Statement {
    const binder = new Binder();
    const absent = options.ifAbsent === true ? " if absent" : "";
    const text = `${this.#put(documents, binder)}${absent}${requireClause(options.require)}`;
    return [text, binder.params];
  }

  toUpsert(documents: Document<F> | readonly Document<F>[], patch: Patch<F>, options: InsertOptions = {}): Statement {
    const binder = new Binder();
    const put = this.#put(documents, binder);
    const text = `${put} if absent else set ${object(patch, binder, true)}${requireClause(options.require)}`;
    return [text, binder.params];
  }

  toUpdate(patch: Patch<F>, options: WriteOptions & ReturningOption = {}): Statement {
    this.#writable();
    const binder = new Binder();
    const text = `set ${this.collection} ${object(patch, binder, true)}`;
    return [text + this.#pick(options, binder), binder.params];
  }

  toDelete(options: WriteOptions & ReturningOption = {}): Statement {
    this.#writable();
    const binder = new Binder();
    return [`del ${this.collection}${this.#pick(options, binder)}`, binder.params];
  }

  /** The answer as it came: rows, for a read. */
  async run(options: SendOptions = {}): Promise<Answer> {
    return this.database.run(...this.toFenecQL(), options);
  }

  async rows(options: SendOptions = {}): Promise<R[]> {
    return (await this.#send(this.toFenecQL(), options)) as unknown as R[];
  }

  /** The first row, null when there is none. */
  async first(options: SendOptions = {}): Promise<R | null> {
    const rows = await this.#send(this.toFirst(), options);
    return (rows[0] as R | undefined) ?? null;
  }

  async count(options: SendOptions = {}): Promise<number> {
    const rows = await this.#send(this.toCount(), options);
    return Number(rows[0]?.["count"] ?? 0);
  }

  /** The lines of the plan. */
  async explain(options: SendOptions = {}): Promise<string[]> {
    return (await this.#send(this.toExplain(), options)).map((row) => String(row["plan"]));
  }

  /** Puts documents; gives how many were written. An empty list is 0 and sends nothing. */
  async insert(documents: Document<F> | readonly Document<F>[], options: InsertOptions = {}): Promise<number> {
    if (Array.isArray(documents) && documents.length === 0) return 0;
    return this.#write(this.toInsert(documents, options), options);
  }

  /** Puts documents, and patches the rows that hold their id or unique value; gives how many rows were written. */
  async upsert(
    documents: Document<F> | readonly Document<F>[],
    patch: Patch<F>,
    options: InsertOptions = {},
  ): Promise<number> {
    if (Array.isArray(documents) && documents.length === 0) return 0;
    return this.#write(this.toUpsert(documents, patch, options), options);
  }

  /** Patches the rows the chain picks: how many, or with `returning` the rows as written. */
  update(patch: Patch<F>, options: WriteOptions & { readonly returning: true | readonly ["*"] }): Promise<Row<F>[]>;
  update<const Items extends readonly FieldName<F>[]>(
    patch: Patch<F>,
    options: WriteOptions & { readonly returning: Items },
  ): Promise<Picked<F, Items>[]>;
  update(patch: Patch<F>, options?: WriteOptions): Promise<number>;
  async update(patch: Patch<F>, options: WriteOptions & ReturningOption = {}): Promise<unknown> {
    return this.#writeOrRows(this.toUpdate(patch, options), options);
  }

  /** Deletes the rows the chain picks: how many, or with `returning` the rows as they were. */
  delete(options: WriteOptions & { readonly returning: true | readonly ["*"] }): Promise<Row<F>[]>;
  delete<const Items extends readonly FieldName<F>[]>(
    options: WriteOptions & { readonly returning: Items },
  ): Promise<Picked<F, Items>[]>;
  delete(options?: WriteOptions): Promise<number>;
  async delete(options: WriteOptions & ReturningOption = {}): Promise<unknown> {
    return this.#writeOrRows(this.toDelete(options), options);
  }

  async #writeOrRows(statement: Statement, options: WriteOptions & ReturningOption): Promise<unknown> {
    return asksRows(options.returning) ? this.#send(statement, options) : this.#write(statement, options);
  }

  async #send(statement: Statement, options: SendOptions): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const answer = await this.database.run(statement[0], statement[1], options);
    if (!("rows" in answer)) wrongAnswer(statement[0], "rows");
    return answer.rows as readonly Readonly<Record<string, unknown>>[];
  }

  async #write(statement: Statement, options: SendOptions): Promise<number> {
    const answer = await this.database.run(statement[0], statement[1], options);
    if (!("count" in answer)) wrongAnswer(statement[0], "count");
    return Number(answer.count);
  }

  #read(end: "rows" | "count"): Statement {
    const { collection, items, group, near, order, limit, offset, require } = this.#state;
    const aggregates = items.some(isAggregate);
    if (end === "count") {
      const beside = [
        ["select", items.length > 0],
        ["near", near !== undefined],
        ["order", order.length > 0],
        ["limit", limit !== undefined],
        ["offset", offset !== undefined],
        ["require", require !== undefined],
      ] as const;
      for (const [clause, present] of beside) {
        if (present) refuse(`count-with-${clause}`, `count takes no ${clause}`);
      }
    } else if (group.length > 0 && !aggregates) {
      refuse("group-without-aggregate", "group needs an aggregate in its select, such as count(*)");
    } else if (aggregates && group.length === 0) {
      if (limit !== undefined || offset !== undefined)
        refuse("aggregate-paged", "an aggregate over all rows is one row: no limit, no offset");
      if (require !== undefined) refuse("aggregate-require", "an aggregate over all rows is one row: no require");
    }

    const binder = new Binder();
    let text = `get ${collection}`;
    if (items.length > 0) text += ` select ${items.map((item) => itemText(item, binder)).join(", ")}`;
    text += this.#whereClause(binder);
    if (group.length > 0) text += ` group ${group.map((key) => itemText(key, binder)).join(", ")}`;
    if (near !== undefined) text += ` near ${near.field} ${binder.bind(near.point)}${near.exact ? " exact" : ""}`;
    text += this.#orderClause(binder);
    if (limit !== undefined) text += ` limit ${limit}`;
    if (offset !== undefined) text += ` offset ${offset}`;
    text += requireClause(require);
    if (end === "count") text += " count";
    return [text, binder.params];
  }

  #whereClause(binder: Binder): string {
    const text = renderAll(this.#state.conditions, binder);
    return text === "" ? "" : ` where ${text}`;
  }

  #orderClause(binder: Binder): string {
    const { order } = this.#state;
    if (order.length === 0) return "";
    const keys = order.map(({ key, collate, descending }) => {
      const text = key instanceof Raw ? key.render(binder) : key;
      return `${text}${collate === undefined ? "" : ` collate ${collate}`} ${descending ? "desc" : "asc"}`;
    });
    return ` order ${keys.join(", ")}`;
  }

  /** The clauses behind a `set` or a `del`: which rows, and what is answered. */
  #pick(options: WriteOptions & ReturningOption, binder: Binder): string {
    const { limit } = this.#state;
    const where = this.#whereClause(binder);
    if (where === "" && limit === undefined && options.all !== true) {
      refuse(
        "unbounded-write",
        `this would write all of \`${this.collection}\`: add a where or a limit, or say {all: true}`,
      );
    }
    const order = this.#orderClause(binder);
    const page = limit === undefined ? "" : ` limit ${limit}`;
    return where + order + page + returningClause(options.returning) + requireClause(options.require);
  }

  /** A `set` or `del` takes where, order and limit of a chain, and nothing else. */
  #writable(): void {
    const { items, group, near, offset, require } = this.#state;
    const beside = [
      ["select", items.length > 0],
      ["group", group.length > 0],
      ["near", near !== undefined],
      ["offset", offset !== undefined],
    ] as const;
    for (const [clause, present] of beside) {
      if (present) refuse(`write-with-${clause}`, `a write takes no ${clause}`);
    }
    if (require !== undefined) refuse("require-is-an-option", "a write takes require as an option: {require: 1}");
  }

  #put(documents: unknown, binder: Binder): string {
    this.#writable();
    const { conditions, order, limit } = this.#state;
    const beside = [
      ["where", conditions.length > 0],
      ["order", order.length > 0],
      ["limit", limit !== undefined],
    ] as const;
    for (const [clause, present] of beside) {
      if (present) refuse(`write-with-${clause}`, `a put takes no ${clause}`);
    }
    const head = `put ${this.collection} `;
    if (!Array.isArray(documents)) return head + object(documents, binder, false);
    if (documents.length === 0) refuse("no-documents", "a put needs a document");
    if (documents.length === 1) return head + object(documents[0], binder, false);
    return `${head}[${documents.map((document) => object(document, binder, false)).join(", ")}]`;
  }
}

function itemName(name: string): string {
  return aggregateText(name) ?? pathName(name);
}

function isAggregate(item: string | Expr | Aliased): boolean {
  if (typeof item === "string") return item.endsWith(")");
  return item instanceof Aliased ? item.of.aggregates : item.aggregates;
}

function itemText(item: string | Expr | Aliased, binder: Binder): string {
  if (typeof item === "string") return item;
  return item instanceof Aliased ? `${item.of.render(binder)} as ${item.columnName}` : item.render(binder);
}

/** `{field: value, ...}` of a document or a patch. */
function object(fields: unknown, binder: Binder, patch: boolean): string {
  const entries = isPlainObject(fields) ? Object.entries(fields) : [];
  if (entries.length === 0)
    refuse("empty-document", `${patch ? "a patch" : "a document"} is an object with a field at least`);
  const parts = entries.map(([name, value]) => {
    const field = pathName(name);
    if (value instanceof Expr) return `${field}: ${value.render(binder)}`;
    if (!(value instanceof Inc)) return `${field}: ${binder.bind(value)}`;
    if (!patch) refuse("inc-in-put", `\`${field}\`: inc adds to a row's value, and a new document has none`);
    return `${field}: coalesce(${field}, 0) + ${binder.bind(value.by)}`;
  });
  return `{${parts.join(", ")}}`;
}

function asksRows(returning: Returning): returning is true | readonly string[] {
  return returning !== undefined && returning !== false;
}

function returningClause(returning: Returning): string {
  if (!asksRows(returning)) return "";
  if (returning === true) return " returning *";
  if (!Array.isArray(returning)) refuse("bad-returning", "returning takes true or a list of fields");
  if (returning.length === 0) refuse("returning-empty", "returning names no field; true answers all");
  if (returning.includes("*")) {
    if (returning.length > 1) refuse("returning-star-and-more", "returning * answers every field: name no other");
    return " returning *";
  }
  return ` returning ${returning.map(pathName).join(", ")}`;
}

function requireClause(rows: number | undefined): string {
  return rows === undefined ? "" : ` require ${whole(rows, "require", "bad-require")}`;
}

function whole(value: number, word: string, code: string): number {
  if (!Number.isSafeInteger(value) || value < 0)
    refuse(code, `${word} takes a whole number from 0, not ${String(value)}`);
  return value;
}
