/**
 * A second parser of expressions, as plain as can be: tokens cut by one regular expression, one function a level of
 * precedence, no bounds and no messages. It answers the tree, or undefined for a text it does not take.
 */

import type { BinaryOp, Expr } from "../../src/lang/ast.ts";
import { listConstant, objectConstant } from "../../src/lang/constant.ts";
import { Float } from "../../src/value/value.ts";

interface Token {
  readonly kind: "number" | "text" | "name" | "param" | "symbol";
  readonly text: string;
  readonly at: number;
}

const TOKEN =
  /(?<space>\s+|--[^\n\r]*|#[^\n\r]*)|(?<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\p{L}_.\d]))|(?<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?<name>[\p{L}_][\p{L}\p{M}\p{Nd}_]*(?:\.[\p{L}_][\p{L}\p{M}\p{Nd}_]*)*(?![.\p{L}\p{M}\p{Nd}_]))|(?<param>\$[1-9]\d*(?![\p{L}_]))|(?<symbol><=|>=|!=|<>|==|[-+*/=<>~()[\]{},:])/suy;

class Wrong extends Error {}

function tokens(text: string): Token[] {
  const found: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex;
    const groups = TOKEN.exec(text)?.groups;
    if (groups === undefined) throw new Wrong();
    for (const kind of ["number", "text", "name", "param", "symbol"] as const) {
      const token = groups[kind];
      if (token !== undefined) found.push({ kind, text: token, at });
    }
  }
  return found;
}

export function referenceParse(text: string): Expr | undefined {
  try {
    const parser = new Reference(tokens(text));
    const expr = parser.or();
    return parser.isDone() ? expr : undefined;
  } catch (failure) {
    if (failure instanceof Wrong) return undefined;
    throw failure;
  }
}

class Reference {
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(all: readonly Token[]) {
    this.#tokens = all;
  }

  isDone(): boolean {
    return this.#next === this.#tokens.length;
  }

  #peek(ahead = 0): Token | undefined {
    return this.#tokens[this.#next + ahead];
  }

  #isWord(word: string, ahead = 0): boolean {
    const token = this.#peek(ahead);
    return token?.kind === "name" && token.text.toLowerCase() === word;
  }

  #isSymbol(symbol: string): boolean {
    const token = this.#peek();
    return token?.kind === "symbol" && token.text === symbol;
  }

  #takeWord(word: string): boolean {
    if (!this.#isWord(word)) return false;
    this.#next++;
    return true;
  }

  #take(symbol: string): boolean {
    if (!this.#isSymbol(symbol)) return false;
    this.#next++;
    return true;
  }

  #need(taken: boolean): void {
    if (!taken) throw new Wrong();
  }

  or(): Expr {
    const of = [this.#and()];
    while (this.#takeWord("or")) of.push(this.#and());
    return of.length === 1 ? of[0]! : { kind: "or", of };
  }

  #and(): Expr {
    const of = [this.#not()];
    while (this.#takeWord("and")) of.push(this.#not());
    return of.length === 1 ? of[0]! : { kind: "and", of };
  }

  #isNot(): boolean {
    if (!this.#isWord("not")) return false;
    const next = this.#peek(1);
    if (next === undefined) return false;
    // Before an operator or a closing bracket it is a field.
    return next.kind !== "symbol" || ["-", "(", "[", "{"].includes(next.text);
  }

  #not(): Expr {
    if (!this.#isNot()) return this.#comparison();
    this.#next++;
    return { kind: "unary", op: "not", of: this.#not() };
  }

  #comparison(): Expr {
    const left = this.#sum();
    const token = this.#peek();
    if (token?.kind === "symbol" && ["=", "==", "!=", "<>", "<", "<=", ">", ">=", "~"].includes(token.text)) {
      this.#next++;
      const op = token.text === "==" ? "=" : token.text === "<>" ? "!=" : (token.text as BinaryOp);
      return { kind: "binary", op, left, right: this.#sum() };
    }
    if (this.#takeWord("has")) return { kind: "binary", op: "has", left, right: this.#sum() };
    if (this.#takeWord("is")) {
      const not = this.#takeWord("not");
      this.#need(this.#takeWord("null"));
      return { kind: "isNull", of: left, not };
    }
    if (this.#takeWord("in")) {
      this.#need(this.#take("["));
      return { kind: "in", left, list: this.#list("]") };
    }
    return left;
  }

  #sum(): Expr {
    let left = this.#term();
    for (;;) {
      const op = this.#take("+") ? "+" : this.#take("-") ? "-" : undefined;
      if (op === undefined) return left;
      left = { kind: "binary", op, left, right: this.#term() };
    }
  }

  #term(): Expr {
    let left = this.#unary();
    for (;;) {
      const op = this.#take("*") ? "*" : this.#take("/") ? "/" : undefined;
      if (op === undefined) return left;
      left = { kind: "binary", op, left, right: this.#unary() };
    }
  }

  #unary(): Expr {
    const minus = this.#peek();
    if (!this.#take("-")) return this.#primary();
    const number = this.#peek();
    if (minus !== undefined && number?.kind === "number" && number.at === minus.at + 1) {
      this.#next++;
      return this.#number(`-${number.text}`);
    }
    return { kind: "unary", op: "-", of: this.#unary() };
  }

  #number(digits: string): Expr {
    const n = Number(digits);
    if (!/^-?\d+$/.test(digits)) {
      if (!Number.isFinite(n)) throw new Wrong();
      return { kind: "const", value: String(n) === digits ? new Float(n) : new Float(n, digits) };
    }
    const int = BigInt(digits);
    if (BigInt.asIntN(64, int) !== int) throw new Wrong();
    return { kind: "const", value: Number.isSafeInteger(n) ? Number(int) : int };
  }

  /** Behind the opening bracket, to behind the closing one; a comma may end it. */
  #list(close: string): Expr[] {
    const items: Expr[] = [];
    while (!this.#take(close)) {
      items.push(this.or());
      if (!this.#take(",")) {
        this.#need(this.#take(close));
        break;
      }
    }
    return items;
  }

  #primary(): Expr {
    if (this.#take("(")) {
      const inner = this.or();
      this.#need(this.#take(")"));
      return inner;
    }
    if (this.#take("[")) {
      const items = this.#list("]");
      return items.every((item) => item.kind === "const") ? listConstant(items) : { kind: "list", items };
    }
    if (this.#take("{")) return this.#object();
    const token = this.#peek();
    if (token === undefined) throw new Wrong();
    this.#next++;
    switch (token.kind) {
      case "number":
        return this.#number(token.text);
      case "text":
        return { kind: "const", value: unquoted(token.text) };
      case "param":
        this.#need(Number(token.text.slice(1)) <= 1_000_000);
        return { kind: "param", index: Number(token.text.slice(1)) - 1 };
      case "name":
        return this.#name(token.text);
      default:
        throw new Wrong();
    }
  }

  #object(): Expr {
    const entries: { key: string; value: Expr }[] = [];
    while (!this.#take("}")) {
      const token = this.#peek();
      if (token === undefined || (token.kind !== "text" && token.kind !== "name")) throw new Wrong();
      if (token.kind === "name" && token.text.includes(".")) throw new Wrong();
      const key = token.kind === "text" ? unquoted(token.text) : token.text;
      if (entries.some((entry) => entry.key === key)) throw new Wrong();
      this.#next++;
      this.#need(this.#take(":"));
      entries.push({ key, value: this.or() });
      if (!this.#take(",")) {
        this.#need(this.#take("}"));
        break;
      }
    }
    return entries.every(({ value }) => value.kind === "const") ? objectConstant(entries) : { kind: "object", entries };
  }

  #name(text: string): Expr {
    const lower = text.toLowerCase();
    // `not` that binds looser than where it stands.
    this.#next--;
    if (this.#isNot()) throw new Wrong();
    const isCase = lower === "case" && this.#isWord("when", 1);
    this.#next++;
    if (lower === "null") return { kind: "const", value: null };
    if (lower === "true" || lower === "false") return { kind: "const", value: lower === "true" };
    if (isCase) return this.#case();
    if (!text.includes(".") && this.#take("(")) {
      const args: Expr[] = [];
      if (!this.#take(")")) {
        do args.push(this.or());
        while (this.#take(","));
        this.#need(this.#take(")"));
      }
      return { kind: "call", name: lower, args, star: false, distinct: false, by: null, at: 0 };
    }
    const [field, ...keys] = text.split(".");
    return { kind: "path", field: field!, keys, at: 0 };
  }

  #case(): Expr {
    const whens: { when: Expr; then: Expr }[] = [];
    while (this.#takeWord("when")) {
      const when = this.or();
      this.#need(this.#takeWord("then"));
      const then = this.or();
      whens.push({ when, then });
    }
    const otherwise = this.#takeWord("else") ? this.or() : null;
    this.#need(this.#takeWord("end"));
    return { kind: "case", whens, otherwise };
  }
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", "0": "\0" };

function unquoted(text: string): string {
  return text.slice(1, -1).replace(/\\(.)/gs, (_, character: string) => ESCAPES[character] ?? character);
}
