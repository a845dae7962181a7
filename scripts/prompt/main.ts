/** The prompt: reads statements from a terminal, a file or the command line, and prints what the server answers. */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { HELP, type Options, optionsOf } from "./options.ts";
import { Session } from "./session.ts";
import { commandOf, isWhole, statementsOf } from "./statements.ts";

const HISTORY_LINES = 1_000;

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function complain(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Statements, and the file they came in. */
interface Text {
  readonly text: string;
  readonly file: string | undefined;
}

/** @throws Error with words for the user. */
function textOf({ kind, value }: Options["work"][number]): Text {
  if (kind === "text") return { text: value, file: undefined };
  try {
    return { text: readFileSync(value === "-" ? 0 : value, "utf8"), file: value };
  } catch {
    throw new Error(`the file ${value} cannot be read`);
  }
}

/** Runs texts one after another; false at the first statement or command refused. */
async function runAll(session: Session, texts: readonly Text[]): Promise<boolean> {
  for (const { text, file } of texts) {
    for (const piece of statementsOf(text)) {
      const command = commandOf(piece.text);
      if (command === undefined) {
        const place = file === undefined ? undefined : { file, line: piece.line };
        if (!(await session.statement(piece.text, place))) return false;
        continue;
      }
      const next = await session.command(command);
      if (next === "leave") return true;
      if (next === "wrong") return false;
      if (next !== "done") {
        complain("\\watch is for the prompt");
        return false;
      }
    }
  }
  return true;
}

function historyFile(): string {
  return process.env["FENEC_HISTORY"] ?? join(homedir(), ".fenec_history");
}

/** Newest first, as readline keeps it. */
function readHistory(): string[] {
  const file = historyFile();
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .reverse();
}

function writeHistory(lines: readonly string[]): void {
  try {
    writeFileSync(historyFile(), [...lines].reverse().slice(-HISTORY_LINES).join("\n"), { mode: 0o600 });
  } catch (error) {
    complain(`the history was not saved: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function prompt(session: Session): Promise<void> {
  let history = readHistory();
  const terminal = createInterface({
    input: process.stdin,
    output: process.stdout,
    history: [...history],
    historySize: HISTORY_LINES,
    removeHistoryDuplicates: true,
  });
  terminal.on("history", (lines: string[]) => {
    history = lines;
  });
  print(`fenec at ${session.url}; \\? for help, \\q to leave`);

  let text = "";
  let watch: ReturnType<typeof setInterval> | undefined;
  let closed = false;
  terminal.on("close", () => {
    closed = true;
  });
  const ask = (): void => {
    // Lines that came before the end of the input are still run, but nobody is there to be asked for more.
    if (closed) return;
    terminal.setPrompt(text === "" ? "fenec> " : "  ...> ");
    terminal.prompt();
  };
  const endWatch = (): void => {
    clearInterval(watch);
    watch = undefined;
  };
  terminal.on("SIGINT", () => {
    if (session.interrupt()) return;
    if (watch !== undefined) endWatch();
    else if (text === "" && terminal.line === "") return terminal.close();
    text = "";
    print("");
    ask();
  });

  ask();
  for await (const line of terminal) {
    if (watch !== undefined) {
      endWatch();
    } else if (text === "" && commandOf(line) !== undefined) {
      const next = await session.command(commandOf(line) ?? "");
      if (next === "leave") break;
      if (typeof next === "object") {
        await session.repeat();
        watch = setInterval(() => void session.repeat(), next.watchMs);
        continue;
      }
    } else {
      text = text === "" ? line : `${text}\n${line}`;
      if (isWhole(text)) {
        for (const piece of statementsOf(text)) if (!(await session.statement(piece.text))) break;
        text = "";
      } else {
        text = text.trimEnd().replace(/\\$/, "");
      }
    }
    ask();
  }
  endWatch();
  terminal.close();
  writeHistory(history);
}

async function main(): Promise<number> {
  let options: Options | "help";
  let texts: readonly Text[] = [];
  try {
    options = optionsOf(process.argv.slice(2), process.env);
    if (options !== "help") texts = options.work.map(textOf);
  } catch (error) {
    complain(`shell: ${error instanceof Error ? error.message : String(error)}`);
    return 2;
  }
  if (options === "help") {
    print(HELP);
    return 0;
  }
  const { url, token, timing } = options;
  const output = options.output ?? (process.stdout.isTTY === true ? "table" : "plain");
  const session = new Session({ url, token, output, timing, print, complain });
  if (texts.length === 0 && process.stdin.isTTY !== true) texts = [textOf({ kind: "file", value: "-" })];
  if (texts.length > 0) return (await runAll(session, texts)) ? 0 : 1;
  await prompt(session);
  return 0;
}

process.exitCode = await main();
