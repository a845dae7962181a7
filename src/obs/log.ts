/** Log lines: one a line on stderr, `<time> <level> <words> name=value ...`, so that a line is read by eye or by `cut`. */

export type LogLevel = "info" | "warn" | "error";
export type LogFields = Readonly<Record<string, string | number | boolean>>;

export class Log {
  readonly #write: (line: string) => void;

  constructor(write: (line: string) => void = (line) => void process.stderr.write(line)) {
    this.#write = write;
  }

  info(words: string, fields: LogFields = {}): void {
    this.#line("info", words, fields);
  }

  warn(words: string, fields: LogFields = {}): void {
    this.#line("warn", words, fields);
  }

  /** With the stack when `cause` is an error: a line of this level asks for somebody to look at it. */
  error(words: string, fields: LogFields = {}, cause?: unknown): void {
    this.#line("error", words, fields);
    if (cause !== undefined)
      this.#write(`${cause instanceof Error ? (cause.stack ?? String(cause)) : String(cause)}\n`);
  }

  #line(level: LogLevel, words: string, fields: LogFields): void {
    let line = `${new Date().toISOString()} ${level} ${oneLine(words)}`;
    for (const [name, value] of Object.entries(fields)) line += ` ${name}=${fieldText(value)}`;
    this.#write(`${line}\n`);
  }
}

function oneLine(text: string): string {
  return text.replaceAll(/[\r\n]+/g, " ");
}

function fieldText(value: string | number | boolean): string {
  return typeof value === "string" && !/^[\w.:/@+-]+$/.test(value) ? JSON.stringify(value) : String(value);
}
