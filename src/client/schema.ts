/**
 * What a collection's fields are to TypeScript. A schema type is written as the collections are declared, a word a field,
 * and from it come the types of rows, filters, documents and patches. It is a type alone: nothing of it runs.
 *
 *     interface Schema {
 *       jobs: { payload: Json<{ to: string }>; run_at: "timestamp"; owner: "text"; attempts: "int"; error: "text" };
 *     }
 *     const db = connect<Schema>(url);
 *
 * `"int required"` takes the null away. Every row has `id`, which no schema names.
 */

import type { Expr, Inc } from "./expression.ts";

declare const content: unique symbol;

/** A json field whose content is known: `Json<{ to: string }>`. `"json"` is one whose content is `unknown`. */
export interface Json<Content, Required extends boolean = false> {
  readonly [content]: readonly [Content, Required];
}

/** `bigint` is an `int` field whose values may be past 2^53: read as number or bigint. */
type ScalarWord = "bool" | "int" | "bigint" | "float" | "text" | "bytes" | "timestamp" | "json" | "geo";
type FieldWord = ScalarWord | `[${ScalarWord}]`;

type FieldType = FieldWord | `${FieldWord} required` | Json<unknown, boolean>;

/** Holds a schema type to the words above: `connect<S extends SchemaOf<S>>`. */
export type SchemaOf<S> = {
  readonly [C in keyof S]: S[C] extends LooseFields ? S[C] : { readonly [K in keyof S[C]]: FieldType };
};

/** An untyped collection: any field, each of unknown type. */
declare const loose: unique symbol;
export interface LooseFields {
  readonly [loose]: true;
}
export interface LooseSchema {
  readonly [collection: string]: LooseFields;
}

/**
 * A row of an untyped collection. The fields a queue has by convention are named, so that they can be read with a dot
 * under `noPropertyAccessFromIndexSignature` as well.
 */
export interface LooseRow {
  readonly id: number;
  readonly payload: unknown;
  readonly run_at: unknown;
  readonly owner: unknown;
  readonly attempts: unknown;
  readonly priority: unknown;
  readonly error: unknown;
  readonly [field: string]: unknown;
}

type IsLoose<F> = F extends LooseFields ? true : false;

interface ReadWords {
  bool: boolean;
  int: number;
  bigint: number | bigint;
  float: number;
  text: string;
  bytes: readonly number[];
  timestamp: string;
  json: unknown;
  geo: readonly [number, number];
}
interface WriteWords {
  bool: boolean;
  int: number | bigint;
  bigint: number | bigint;
  float: number;
  text: string;
  bytes: string | Uint8Array | readonly number[];
  timestamp: string | number | Date;
  json: unknown;
  geo: readonly [number, number];
}

type Word<W, Words> = W extends keyof Words
  ? Words[W]
  : W extends `[${infer Of}]`
    ? Of extends keyof Words
      ? readonly Words[Of][]
      : never
    : never;

type Held<W, Words> =
  W extends Json<infer Content, infer Required>
    ? Required extends true
      ? Content
      : Content | null
    : W extends `${infer Bare} required`
      ? Word<Bare, Words>
      : Word<W, Words> | null;

/** What a field answers. */
export type ReadValue<W> = Held<W, ReadWords>;
/** What a field takes. */
export type WriteValue<W> = Held<W, WriteWords>;

type JsonFields<F> = {
  [K in keyof F & string]: F[K] extends Json<unknown, boolean> | "json" | "json required" ? K : never;
}[keyof F & string];

/** A path into a json field: `payload.to`. */
export type Path<F> = `${JsonFields<F>}.${string}`;
/** A field, a path, or `id`. */
export type FieldName<F> = IsLoose<F> extends true ? string : "id" | (keyof F & string) | Path<F>;

type ContentAt<Content, Keys extends string> = unknown extends Content
  ? unknown
  : Keys extends `${infer Key}.${infer Rest}`
    ? Key extends keyof Content
      ? ContentAt<NonNullable<Content[Key]>, Rest>
      : unknown
    : Keys extends keyof Content
      ? Content[Keys] | null
      : unknown;

type ReadPath<F, P extends string> = P extends `${infer Field}.${infer Keys}`
  ? Field extends keyof F
    ? F[Field] extends Json<infer Content, boolean>
      ? ContentAt<Content, Keys>
      : unknown
    : unknown
  : unknown;

/** What a field, a path or `id` answers. */
export type ReadField<F, N extends string> =
  IsLoose<F> extends true ? unknown : N extends keyof F ? ReadValue<F[N]> : N extends "id" ? number : ReadPath<F, N>;

/** What a field, a path or `id` may be compared with; null always may. */
export type FilterValue<F, N extends string> =
  IsLoose<F> extends true
    ? unknown
    : N extends keyof F
      ? WriteValue<F[N]> | Expr | null
      : N extends "id"
        ? number | bigint
        : ReadPath<F, N> | Expr | null;

/** A whole row. */
export type Row<F> =
  IsLoose<F> extends true ? LooseRow : { readonly [K in keyof F]: ReadValue<F[K]> } & { readonly id: number };

/** `count(*)`, `max(attempts)`, `sum(payload.n)`. */
export type AggregateText = `${string}(${string})`;

type Column<F, I> = I extends { readonly columnName: infer Name extends string }
  ? { readonly [K in Name]: unknown }
  : I extends "*"
    ? Row<F>
    : I extends AggregateText
      ? Lowercase<I> extends "count(*)" | "count()"
        ? { readonly count: number }
        : Readonly<Record<string, unknown>>
      : I extends string
        ? { readonly [K in I]: ReadField<F, I> }
        : Readonly<Record<string, unknown>>;

/** The row a list of fields, paths, aggregates and computed columns answers. */
export type Picked<F, Items extends readonly unknown[]> =
  IsLoose<F> extends true
    ? LooseRow
    : Items extends readonly []
      ? Row<F>
      : Flat<Items extends readonly [infer First, ...infer Rest] ? Column<F, First> & Columns<F, Rest> : Row<F>>;

type Columns<F, Items extends readonly unknown[]> = Items extends readonly [infer First, ...infer Rest]
  ? Column<F, First> & Columns<F, Rest>
  : unknown;

type Flat<T> = { readonly [K in keyof T]: T[K] };

type RequiredFields<F> = {
  [K in keyof F & string]: null extends WriteValue<F[K]> ? never : K;
}[keyof F & string];

/** A document to put: every required field, any other, `id` if it is to be chosen; paths into json fields. */
export type Document<F> =
  IsLoose<F> extends true
    ? Readonly<Record<string, unknown>>
    : { readonly [K in RequiredFields<F>]: WriteValue<F[K]> | Expr } & {
        readonly [K in keyof F]?: WriteValue<F[K]> | Expr;
      } & { readonly [P in Path<F>]?: unknown } & { readonly id?: number | bigint };

type Countable = "int" | "bigint" | "float" | "int required" | "bigint required" | "float required";

/** What a `set` writes: values, `expr(...)`, and `inc(n)` for a number. */
export type Patch<F> =
  IsLoose<F> extends true
    ? Readonly<Record<string, unknown>>
    : { readonly [K in keyof F]?: WriteValue<F[K]> | Expr | (F[K] extends Countable ? Inc : never) } & {
        readonly [P in Path<F>]?: unknown;
      };
