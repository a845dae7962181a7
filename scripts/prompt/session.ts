/** What a prompt does with one statement or one command: asks the server, and prints the answer or why there is none. */

import { connect, FenecError, type FenecHttp } from "../../src/client/index.ts";
import { plain, type Rows, table } from "./table.ts";

export interface SessionOptions {
  readonly url: string;
  readonly token: string | undefined;
  readonly output: "table" | "plain" | "json";
  readonly timing: boolean;
  readonly print: (text: string) => void;
  readonly complain: (text: string) => void;
}

const COMMANDS = `\\d            the collections, and their fields
\\d name       one collection, its fields and indexes
\\timing       how long each statement takes, on or off
\\json         answers as the server sent them, on or off
\\wait ms      hold claims that find nothing so long at the server; 0 for none
\\watch [s]    run the last statement again every so many seconds (2), until Enter
\\?            this text
\\q            leave, as exit and quit do

Enter runs a line, unless a bracket or a string is open in it or it ends with \\. A ; is never needed.`;

export class Session {
  readonly #db: FenecHttp;
  readonly #options: SessionOptions;
  #timing: boolean;
  #output: SessionOptions["output"];
  #waitMs = 0;
  /** The last answer's text, as it came. */
  #answer = "";
  #last: string | undefined;
  #running: AbortController | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#timing = options.timing;
    this.#output = options.output;
    this.#db = connect(options.url, {
      token: options.token,
      fetch: async (url, init) => {
        const response = await fetch(url, init);
        this.#answer = await response.text();
        return new Response(this.#answer, { status: response.status, headers: response.headers });
      },
    });
  }

  get url(): string {
    return this.#db.url;
  }

  /** Gives up what is being waited for; false when nothing is. */
  interrupt(): boolean {
    if (this.#running === undefined) return false;
    this.#running.abort(new Error("given up"));
    return true;
  }

  /**
   * Runs one statement and prints its answer.
   * @param place where the statement stands, for the message of a refusal: `file:` and its first line.
   * @returns whether it was answered.
   */
  async statement(text: string, place?: { readonly file: string; readonly line: number }): Promise<boolean> {
    this.#last = text;
    const started = performance.now();
    const running = new AbortController();
    this.#running = running;
    try {
      const answer = await this.#db.run(text, [], { wait: this.#waitMs, signal: running.signal });
      const ms = performance.now() - started;
      this.#show(answer);
      if (this.#timing) this.#options.print(`${ms.toFixed(1)} ms`);
      return true;
    } catch (error) {
      this.#options.complain(errorText(error, text, place));
      return false;
    } finally {
      this.#running = undefined;
    }
  }

  /** Runs a command such as `\d jobs`; `leave` ends the prompt, `watchMs` asks it to repeat the last statement. */
  async command(line: string): Promise<"done" | "wrong" | "leave" | { readonly watchMs: number }> {
    const [word = "", argument = ""] = line.trim().split(/\s+/, 2);
    switch (word) {
      case "\\q":
        return "leave";
      case "\\?":
        this.#options.print(COMMANDS);
        break;
      case "\\timing":
        this.#timing = !this.#timing;
        this.#options.print(`timing is ${this.#timing ? "on" : "off"}`);
        break;
      case "\\json":
        this.#output = this.#output === "json" ? "table" : "json";
        this.#options.print(`answers are ${this.#output === "json" ? "json" : "tables"}`);
        break;
      case "\\wait": {
        const ms = Number(argument);
        if (argument === "" || !Number.isInteger(ms) || ms < 0) return this.#wrong("\\wait takes whole milliseconds");
        this.#waitMs = ms;
        break;
      }
      case "\\watch": {
        const seconds = argument === "" ? 2 : Number(argument);
        if (!(seconds >= 0.1 && seconds <= 86_400)) return this.#wrong("\\watch takes seconds, 0.1 at least");
        if (this.#last === undefined) return this.#wrong("\\watch repeats the last statement, and there is none");
        return { watchMs: seconds * 1_000 };
      }
      case "\\d":
        return (await this.#describe(argument)) ? "done" : "wrong";
      default:
        return this.#wrong(`unknown command ${word}; \\? tells them all`);
    }
    return "done";
  }

  #wrong(words: string): "wrong" {
    this.#options.complain(words);
    return "wrong";
  }

  async repeat(): Promise<void> {
    if (this.#last !== undefined) await this.statement(this.#last);
  }

  /** Shows one collection, or with an empty name all; false when the server refused. */
  async #describe(name: string): Promise<boolean> {
    const schemas = await this.#schemas(name === "" ? "collections" : `describe ${name}`);
    if (schemas === undefined) return false;
    const { print } = this.#options;
    if (this.#output === "json") print(this.#answer);
    else if (name !== "") print(this.#fieldsText(schemas[0] ?? {}));
    else if (schemas.length === 0) print("no collections");
    else for (const each of schemas) print(`${each["name"]} (${listOf(each["fields"]).map(fieldText).join(", ")})`);
    return true;
  }

  #fieldsText(schema: Rows[number]): string {
    const fields = listOf(schema["fields"]);
    const paths = listOf(schema["paths"]);
    return this.#rowsText([
      ...fields.map(({ name: field, type, index, required }) => ({
        field,
        type,
        index: indexText(index),
        required: required === true ? "required" : null,
      })),
      ...paths.map((path) => ({
        field: path["path"] ?? path["name"],
        type: "path",
        index: indexText(path["index"]),
        required: null,
      })),
    ]);
  }

  /** Schemas come as a list, or as one under `collections`. */
  async #schemas(text: string): Promise<Rows | undefined> {
    try {
      const answer = await this.#db.run(text);
      return listOf("rows" in answer ? answer.rows : (answer as Rows[number])["collections"]);
    } catch (error) {
      this.#options.complain(errorText(error, text, undefined));
      return undefined;
    }
  }

  #show(answer: Readonly<Record<string, unknown>>): void {
    const { print } = this.#options;
    if (this.#output === "json") {
      print(this.#answer);
    } else if ("rows" in answer) {
      const rows = answer["rows"] as Rows;
      if (rows.length > 0) print(this.#rowsText(rows));
      if (this.#output === "table") print(`(${rows.length} ${rows.length === 1 ? "row" : "rows"})`);
    } else if (answer["kind"] === "affected") {
      const { count } = answer;
      print(this.#output === "table" ? `${count} ${count === 1 ? "row" : "rows"} written` : String(count));
    } else {
      print(typeof answer["message"] === "string" ? answer["message"] : this.#answer);
    }
  }

  #rowsText(rows: Rows): string {
    return this.#output === "plain" ? plain(rows) : table(rows);
  }
}

function listOf(value: unknown): Rows {
  return Array.isArray(value) ? (value as Rows) : [];
}

function fieldText({ name, type, index, required }: Readonly<Record<string, unknown>>): string {
  return [name, type, required === true ? "required" : null, indexText(index)]
    .filter((word) => typeof word === "string")
    .join(" ");
}

function indexText(index: unknown): string | null {
  if (typeof index !== "string") return null;
  return index.startsWith("@") ? index : `@${index}`;
}

/** The words of a refusal, and where the text has a place to point at, that line with a mark under the column. */
export function errorText(
  error: unknown,
  text: string,
  place: { readonly file: string; readonly line: number } | undefined,
): string {
  if (!(error instanceof FenecError)) return `error: ${error instanceof Error ? error.message : String(error)}`;
  const status = error.status === undefined || error.status === 0 ? "" : ` (${error.status} ${error.code})`;
  const { line, column } = error;
  const where = place === undefined ? "" : `${place.file}:${place.line + (line ?? 1) - 1}: `;
  const head = `${where}error: ${error.message}${status}`;
  if (line === undefined || column === undefined) return head;
  const lines = text.split("\n");
  const shown = (lines[line - 1] ?? "").replaceAll("\t", " ");
  return `${head}\n  ${shown}\n  ${" ".repeat(Bun.stringWidth(shown.slice(0, column - 1)))}^`;
}
