/** The command line of the scripts that work on data directories: words, `--name value` or `--name=value`, `--help`. */

/** What ends a script with words for the user and status 2: the command line is wrong. */
export class UsageError extends Error {}

/** What ends a script with words for the user and status 1: it cannot be done. */
export class CannotDo extends Error {}

export interface Command {
  readonly words: readonly string[];
  readonly options: ReadonlyMap<string, string>;
}

/**
 * @param words how many words it takes, with what each is
 * @param flags options that stand alone
 * @param valued options that take a value
 * @returns null when help is asked for
 */
export function commandOf(
  args: readonly string[],
  words: readonly string[],
  flags: readonly string[],
  valued: readonly string[],
): Command | null {
  const found: string[] = [];
  const options = new Map<string, string>();
  const left = [...args];
  for (let word = left.shift(); word !== undefined; word = left.shift()) {
    if (word === "--help" || word === "-h") return null;
    if (!word.startsWith("--")) {
      found.push(word);
      continue;
    }
    const cut = word.indexOf("=");
    const name = cut < 0 ? word : word.slice(0, cut);
    if (flags.includes(name) && cut < 0) options.set(name, "");
    else if (valued.includes(name)) {
      const value = cut < 0 ? left.shift() : word.slice(cut + 1);
      if (value === undefined) throw new UsageError(`${name} needs a value`);
      options.set(name, value);
    } else {
      const known = [...flags, ...valued, "--help"].join(", ");
      throw new UsageError(`there is no option ${word}; there are ${known}`);
    }
  }
  if (found.length !== words.length) {
    throw new UsageError(`it takes ${words.length === 1 ? "one word" : `${words.length} words`}: ${words.join(" ")}`);
  }
  return { words: found, options };
}

/** Runs a script to its exit status; `help` goes to standard output, what is wrong to standard error. */
export async function runScript(
  help: string,
  command: () => Command | null,
  work: (command: Command, print: (line: string) => void) => Promise<number>,
): Promise<number> {
  const print = (line: string): void => {
    process.stdout.write(`${line}\n`);
  };
  try {
    const asked = command();
    if (asked === null) {
      print(help);
      return 0;
    }
    return await work(asked, print);
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`${error.message}; --help tells more\n`);
      return 2;
    }
    if (!(error instanceof Error)) throw error;
    // What the system or the data says is for the user; a defect of the script shows where it is.
    const isPlain =
      error instanceof CannotDo || "code" in error || error.name === "Damage" || error.name === "DirectoryTaken";
    process.stderr.write(`${isPlain ? error.message : error.stack}\n`);
    return 1;
  }
}
