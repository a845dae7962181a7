/**
 * The FenecQL of a documentation page, as statements with the answers it shows. The rules, for who writes a page:
 *
 * - A page is one database, empty at its top, on a test clock; its blocks run one after another. A block opened with
 *   ```` ```fenecql fresh ```` begins with an empty database again.
 * - A line that is not indented begins a statement; indented lines carry it on.
 * - `-- → x` behind a statement's last line, or on a line of its own below it, is its answer: a write's count, or the first
 *   value of the first row answered, json or a bare text; `no row`; `refused: 412`; or a whole answer as json, `[…]`.
 *   Behind `x`, words may follow after `: ` (after `, ` for a refusal). A statement without it has to succeed.
 * - `-- 20 s later` moves the clock on. Units: ms, s, min, h, d.
 * - `-- with ["w1", 5]` gives the next statement its parameters.
 * - Any other comment is for the reader.
 */

export interface Statement {
  /** Of the page, from 1. */
  readonly line: number;
  readonly text: string;
  /** A json list. */
  readonly params: string;
  /** What stands behind the arrow. */
  readonly answer: string | undefined;
}

export type Step =
  | { readonly kind: "statement"; readonly statement: Statement }
  | { readonly kind: "later"; readonly ms: number }
  | { readonly kind: "fresh" };

export interface Block {
  /** What stands behind the three backticks. */
  readonly info: string;
  /** Line of the page at which its content begins, from 1. */
  readonly line: number;
  readonly text: string;
}

const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1_000],
  ["min", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** The fenced blocks of a page, in order. */
export function blocksOf(page: string): readonly Block[] {
  const blocks: Block[] = [];
  let open: { info: string; line: number; lines: string[] } | undefined;
  for (const [index, line] of page.split("\n").entries()) {
    const fence = /^```(.*)$/.exec(line);
    if (fence === null) open?.lines.push(line);
    else if (open === undefined) open = { info: (fence[1] ?? "").trim(), line: index + 2, lines: [] };
    else {
      blocks.push({ info: open.info, line: open.line, text: open.lines.join("\n") });
      open = undefined;
    }
  }
  if (open !== undefined) throw new Error(`the block of line ${open.line - 1} is left open`);
  return blocks;
}

/** All a page runs, in order. */
export function stepsOf(page: string): readonly Step[] {
  return blocksOf(page)
    .filter(({ info }) => info.split(" ")[0] === "fenecql")
    .flatMap(({ info, line, text }) => {
      const fresh: readonly Step[] = info.split(" ").includes("fresh") ? [{ kind: "fresh" }] : [];
      return [...fresh, ...stepsOfBlock(text, line)];
    });
}

interface Draft {
  line: number;
  lines: string[];
  params: string;
  answer: string | undefined;
}

function stepsOfBlock(text: string, firstLine: number): readonly Step[] {
  const steps: (Step | Draft)[] = [];
  let draft: Draft | undefined;
  let params = "[]";
  for (const [index, line] of text.split("\n").entries()) {
    const { code, comment } = cut(line);
    const later = /^(\d+) (\w+) later$/.exec(comment ?? "");
    const given = /^with (\[.*\])$/.exec(comment ?? "");
    if (code.trim() !== "") {
      if (!/^\s/.test(code) || draft === undefined) {
        draft = { line: firstLine + index, lines: [], params, answer: undefined };
        params = "[]";
        steps.push(draft);
      }
      draft.lines.push(code.trimEnd());
    } else if (later !== null) {
      steps.push({ kind: "later", ms: Number(later[1]) * unitMs(later[2] ?? "") });
    } else if (given !== null) params = given[1] ?? "[]";
    if (comment?.startsWith("→ ")) {
      if (draft === undefined) throw new Error(`line ${firstLine + index}: an answer to no statement`);
      draft.answer = comment.slice(2).trim();
    }
  }
  return steps.map((step): Step => {
    if ("kind" in step) return step;
    const { lines, ...rest } = step;
    return { kind: "statement", statement: { ...rest, text: lines.join("\n") } };
  });
}

function unitMs(unit: string): number {
  const ms = UNIT_MS.get(unit);
  if (ms === undefined) throw new Error(`no unit of time: ${unit}`);
  return ms;
}

/** A line's statement and its comment, the `--` and `#` of texts left alone. */
function cut(line: string): { code: string; comment: string | undefined } {
  for (const part of line.matchAll(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|--|#/g)) {
    if (part[0] !== "--" && part[0] !== "#") continue;
    return { code: line.slice(0, part.index), comment: line.slice(part.index + part[0].length).trim() };
  }
  return { code: line, comment: undefined };
}
