/**
 * FenecQL as data: frozen tagged nodes that know no collection. Positions (`at`) are offsets into the text, in UTF-16
 * units, for error messages only; two nodes that differ only in `at` mean the same.
 */

import type { FieldType, Value } from "../value/value.ts";

export type Expr =
  | ConstExpr
  | ParamExpr
  | ClaimExpr
  | PathExpr
  | UnaryExpr
  | BinaryExpr
  | ChainExpr
  | InExpr
  | InGetExpr
  | IsNullExpr
  | CallExpr
  | CaseExpr
  | ListExpr
  | ObjectExpr
  | DurationExpr;

/** A literal: null, true, an int, a float, a text. */
export interface ConstExpr {
  readonly kind: "const";
  readonly value: Value;
}
/** `$1` has index 0. Literals lifted out of a text before the plan cache are parameters too, behind the sent ones. */
export interface ParamExpr {
  readonly kind: "param";
  readonly index: number;
}
/** `$jwt.<name>`: parsed only where a policy's rules are. Its value is the token's claim. */
export interface ClaimExpr {
  readonly kind: "claim";
  readonly name: string;
}
/** A field, or a path into one: `payload.to` is field `payload`, keys `["to"]`. `new.f` is field `new`, keys `["f"]`. */
export interface PathExpr {
  readonly kind: "path";
  readonly field: string;
  readonly keys: readonly string[];
  readonly at: number;
}
export interface UnaryExpr {
  readonly kind: "unary";
  readonly op: "-" | "not";
  readonly of: Expr;
}
export type BinaryOp = "+" | "-" | "*" | "/" | "=" | "!=" | "<" | "<=" | ">" | ">=" | "~" | "has";
export interface BinaryExpr {
  readonly kind: "binary";
  readonly op: BinaryOp;
  readonly left: Expr;
  readonly right: Expr;
}
/** `a and b and c` is one node of three. */
export interface ChainExpr {
  readonly kind: "and" | "or";
  readonly of: readonly Expr[];
}
export interface InExpr {
  readonly kind: "in";
  readonly left: Expr;
  readonly list: readonly Expr[];
}
export interface InGetExpr {
  readonly kind: "inGet";
  readonly left: Expr;
  readonly get: GetStatement;
}
export interface IsNullExpr {
  readonly kind: "isNull";
  readonly of: Expr;
  readonly not: boolean;
}
/**
 * A function or an aggregate, its name in lower case. `count(*)` has `star`; `count(distinct e)` has `distinct`;
 * `first(e by k)` has `by`.
 */
export interface CallExpr {
  readonly kind: "call";
  readonly name: string;
  readonly args: readonly Expr[];
  readonly star: boolean;
  readonly distinct: boolean;
  readonly by: Expr | null;
  readonly at: number;
}
export interface CaseExpr {
  readonly kind: "case";
  readonly whens: readonly { readonly when: Expr; readonly then: Expr }[];
  readonly otherwise: Expr | null;
}
export interface ListExpr {
  readonly kind: "list";
  readonly items: readonly Expr[];
}
export interface ObjectExpr {
  readonly kind: "object";
  readonly entries: readonly { readonly key: string; readonly value: Expr }[];
}
/** `15m` as `bucket`'s second argument: the text as written. */
export interface DurationExpr {
  readonly kind: "duration";
  readonly text: string;
}

/** `text` is the column's name: the `as` name, else the expression as written (a path's text, `count(*)` is `count`). */
export type SelectItem =
  | { readonly kind: "star" }
  | { readonly kind: "item"; readonly expr: Expr; readonly as: string | null; readonly text: string };

export interface OrderKey {
  readonly expr: Expr;
  readonly desc: boolean;
}

/** `limit`, `offset`: a whole number written out, or a parameter. */
export type CountExpr = ConstExpr | ParamExpr;

export interface GetStatement {
  readonly kind: "get";
  readonly collection: string;
  readonly at: number;
  /** Empty: every field. */
  readonly select: readonly SelectItem[];
  readonly where: Expr | null;
  readonly near: { readonly field: string; readonly point: Expr; readonly at: number } | null;
  readonly order: readonly OrderKey[];
  readonly limit: CountExpr | null;
  readonly offset: CountExpr | null;
  readonly count: boolean;
  readonly group: readonly Expr[];
  readonly having: Expr | null;
  /** A literal whole number; lifted literals never stand here. */
  readonly require: number | null;
}

/** One key of a document or a patch: a field, or a path into a json field. */
export interface Assignment {
  readonly field: string;
  readonly keys: readonly string[];
  readonly value: Expr;
  readonly at: number;
}

export interface Document {
  readonly entries: readonly Assignment[];
}

export interface PutStatement {
  readonly kind: "put";
  /** `insert` refuses an id that is held. */
  readonly insert: boolean;
  readonly collection: string;
  readonly at: number;
  /** Documents written out, or one parameter that holds an object or a list of them. */
  readonly documents: readonly Document[] | ParamExpr;
  readonly ifAbsent: boolean;
  /** `else set {...}`; only with `ifAbsent`. */
  readonly elseSet: readonly Assignment[] | null;
  readonly require: number | null;
}

/** `returning`: every field, or the fields and paths named. */
export type Returning =
  | { readonly kind: "all" }
  | { readonly kind: "list"; readonly items: readonly (SelectItem & { readonly kind: "item" })[] };

export interface SetStatement {
  readonly kind: "set";
  readonly collection: string;
  readonly at: number;
  readonly patch: readonly Assignment[];
  readonly where: Expr | null;
  readonly order: readonly OrderKey[];
  readonly limit: CountExpr | null;
  readonly returning: Returning | null;
  readonly require: number | null;
}

export interface DelStatement {
  readonly kind: "del";
  readonly collection: string;
  readonly at: number;
  readonly where: Expr | null;
  readonly order: readonly OrderKey[];
  readonly limit: CountExpr | null;
  readonly returning: Returning | null;
  readonly require: number | null;
}

export interface IndexClause {
  readonly kind: "hash" | "unique" | "sorted" | "geo" | "ttl";
  /** For `ttl`. */
  readonly ttlMs: number;
  readonly ttlText: string;
}

export interface FieldClause {
  readonly name: string;
  readonly type: FieldType;
  readonly required: boolean;
  readonly index: IndexClause | null;
  readonly at: number;
}

export interface CreateStatement {
  readonly kind: "create";
  readonly collection: string;
  readonly at: number;
  readonly ifNotExists: boolean;
  readonly fields: readonly FieldClause[];
}
export interface DropStatement {
  readonly kind: "drop";
  readonly collection: string;
  readonly at: number;
  readonly ifExists: boolean;
}
export interface CreateIndexStatement {
  readonly kind: "createIndex";
  readonly collection: string;
  readonly at: number;
  readonly ifNotExists: boolean;
  readonly field: string;
  readonly keys: readonly string[];
  readonly index: IndexClause;
}
export interface AlterStatement {
  readonly kind: "alter";
  readonly collection: string;
  readonly at: number;
  readonly action:
    | { readonly kind: "add"; readonly field: FieldClause }
    | { readonly kind: "drop"; readonly field: string }
    | { readonly kind: "rename"; readonly field: string; readonly to: string }
    | { readonly kind: "index"; readonly field: string; readonly index: IndexClause };
}
export interface ExplainStatement {
  readonly kind: "explain";
  readonly of: GetStatement | SetStatement | DelStatement;
}
export interface CollectionsStatement {
  readonly kind: "collections";
}
export interface DescribeStatement {
  readonly kind: "describe";
  readonly collection: string;
  readonly at: number;
}
export interface CompactStatement {
  readonly kind: "compact";
  readonly collection: string | null;
}

export type Statement =
  | GetStatement
  | PutStatement
  | SetStatement
  | DelStatement
  | CreateStatement
  | DropStatement
  | CreateIndexStatement
  | AlterStatement
  | ExplainStatement
  | CollectionsStatement
  | DescribeStatement
  | CompactStatement;
