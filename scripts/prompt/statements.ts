/**
 * Cuts a text into statements, and tells whether one is whole. The server takes one statement a request, so a file of
 * them must be cut here, without parsing it: strings, comments and brackets are all that is looked at.
 */

export interface Piece {
  readonly text: string;
  /** Where it begins, from 1. */
  readonly line: number;
}

interface Mark {
  readonly at: number;
  readonly kind: "semicolon" | "newline";
}

interface Scan {
  /** Semicolons and line ends outside of strings, comments and brackets. */
  readonly marks: readonly Mark[];
  /** A string or a bracket is still open at the end. */
  readonly open: boolean;
}

function scan(text: string): Scan {
  const marks: Mark[] = [];
  let depth = 0;
  let quote = "";
  for (let at = 0; at < text.length; at++) {
    const c = text.charAt(at);
    if (quote !== "") {
      if (c === "\\") at++;
      else if (c === quote) quote = "";
    } else if (c === '"' || c === "'") {
      quote = c;
    } else if (c === "#" || (c === "-" && text.charAt(at + 1) === "-")) {
      const end = text.indexOf("\n", at);
      at = (end < 0 ? text.length : end) - 1;
    } else if ("([{".includes(c)) {
      depth++;
    } else if (")]}".includes(c)) {
      depth = Math.max(0, depth - 1);
    } else if (depth === 0 && c === ";") {
      marks.push({ at, kind: "semicolon" });
    } else if (depth === 0 && c === "\n") {
      marks.push({ at, kind: "newline" });
    }
  }
  return { marks, open: depth > 0 || quote !== "" };
}

/** Whether Enter runs the text, or asks for another line: a string or a bracket is open, or the line ends with `\`. */
export function isWhole(text: string): boolean {
  return !text.trimEnd().endsWith("\\") && !scan(text).open;
}

/**
 * The statements of a text. Where it has a `;`, those end them. Where it has none, a statement begins at a line that is
 * not indented, and indented lines carry it on. A command such as `\d` is a line of its own.
 */
export function statementsOf(text: string): readonly Piece[] {
  const { marks } = scan(text);
  const byLines = marks.every(({ kind }) => kind === "newline");
  const pieces: Piece[] = [];
  let from = 0;
  let line = 1;
  for (const { at: cut, kind } of [...marks, { at: text.length, kind: "end" }]) {
    const whole = text.slice(from, cut);
    const next = text.charAt(cut + 1);
    const isCommandsEnd = next === "\\" || whole.trimStart().startsWith("\\");
    if (kind === "newline" && !isCommandsEnd && !(byLines && /\S/.test(next))) continue;
    const blank = /^\s*/.exec(whole)?.[0] ?? "";
    if (hasWords(whole)) pieces.push({ text: whole.trim(), line: line + newlines(blank) });
    line += newlines(text.slice(from, cut + 1));
    from = cut + 1;
  }
  return pieces;
}

/** The command that a piece is, with its backslash; undefined for a statement. */
export function commandOf(text: string): string | undefined {
  const bare = text.trim();
  if (bare.startsWith("\\")) return bare;
  if (/^(exit|quit)[\s;]*$/i.test(bare)) return "\\q";
  return /^help[\s;]*$/i.test(bare) ? "\\?" : undefined;
}

/** Anything besides blanks and comments. */
function hasWords(text: string): boolean {
  return text.split("\n").some((line) => /^\s*(?!--|#|\s|$)/.test(line));
}

function newlines(text: string): number {
  return text.split("\n").length - 1;
}
