/** The command line of the prompt. */

export interface Options {
  readonly url: string;
  readonly token: string | undefined;
  /** Statements to run instead of prompting: texts of `-c`, files of `-f`, in their order. */
  readonly work: readonly { readonly kind: "text" | "file"; readonly value: string }[];
  readonly output: "table" | "plain" | "json" | undefined;
  readonly timing: boolean;
}

export const HELP = `Usage: sh scripts/shell [options] [file ...]

  A prompt for a running server. Statements come from -c, from -f, or from standard input when it is no terminal.

  -c 'statement'   run this (several are separated by ;) and end; may be given again
  -f file          run the statements of a file; - is standard input; the -f may be left out
  --url URL        the server; http://127.0.0.1:8080, or FENEC_URL
  --token TOKEN    the bearer token; or FENEC_TOKEN, which other users of the machine cannot read off a process list
  --json           print each answer as the server sent it, a line an answer
  --plain          print rows tab-separated; the default when standard output is no terminal
  --table          print rows as a table; the default on a terminal
  --timing         print how long each statement took
  --help           this text

  A statement that is refused ends -c and -f with exit status 1; a wrong option is 2.`;

/** @throws Error with words for the user. */
export function optionsOf(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Options | "help" {
  let url = env["FENEC_URL"] ?? "http://127.0.0.1:8080";
  let token = env["FENEC_TOKEN"];
  let output: Options["output"];
  let timing = false;
  const work: { kind: "text" | "file"; value: string }[] = [];
  const left = [...args];
  for (let word = left.shift(); word !== undefined; word = left.shift()) {
    const [flag, inline] = word.startsWith("--") && word.includes("=") ? split(word) : [word, undefined];
    const value = (): string => {
      const given = inline ?? left.shift();
      if (given === undefined) throw new Error(`${flag} needs a value`);
      return given;
    };
    switch (flag) {
      case "--help":
      case "-h":
        return "help";
      case "--url":
        url = value();
        break;
      case "--token":
        token = value();
        break;
      case "-c":
        work.push({ kind: "text", value: value() });
        break;
      case "-f":
        work.push({ kind: "file", value: value() });
        break;
      case "--json":
      case "--plain":
      case "--table":
        output = flag.slice(2) as "json" | "plain" | "table";
        break;
      case "--timing":
        timing = true;
        break;
      default:
        if (!word.startsWith("-")) {
          work.push({ kind: "file", value: word });
          break;
        }
        throw new Error(`unknown option ${word}; --help tells them all`);
    }
  }
  if (!/^https?:\/\//.test(url)) url = `http://${url}`;
  if (!URL.canParse(url)) throw new Error(`--url or FENEC_URL is http://<host>:<port>, not ${url}`);
  return { url, token, work, output, timing };
}

function split(word: string): [string, string] {
  const at = word.indexOf("=");
  return [word.slice(0, at), word.slice(at + 1)];
}
