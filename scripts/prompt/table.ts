/** Answers as text for people: a table on a terminal, tab-separated lines elsewhere. */

import { writeJson } from "../../src/client/json.ts";

export type Rows = readonly Readonly<Record<string, unknown>>[];

/** Columns of a cell on a terminal; a longer one ends in `…`. */
const CELL_WIDTH = 60;

/** A table with a line under its head; numbers to the right, null as nothing. */
export function table(rows: Rows): string {
  const columns = columnsOf(rows);
  if (columns.length === 0) return "";
  const cells = rows.map((row) => columns.map((column) => shortened(cellText(row[column]))));
  const widths = columns.map((column, i) => {
    let width = Bun.stringWidth(column);
    for (const line of cells) width = Math.max(width, Bun.stringWidth(line[i] ?? ""));
    return width;
  });
  const right = columns.map((column) => rows.every((row) => row[column] === null || isNumber(row[column])));
  const lineOf = (texts: readonly string[], toRight: readonly boolean[]): string =>
    texts
      .map((text, i) => {
        const blanks = " ".repeat((widths[i] ?? 0) - Bun.stringWidth(text));
        return toRight[i] === true ? blanks + text : text + blanks;
      })
      .join("  ")
      .trimEnd();
  return [
    lineOf(columns, right),
    widths.map((width) => "-".repeat(width)).join("  "),
    ...cells.map((line) => lineOf(line, right)),
  ].join("\n");
}

/** A head and a line a row, tab-separated, nothing cut. */
export function plain(rows: Rows): string {
  const columns = columnsOf(rows);
  return [columns, ...rows.map((row) => columns.map((column) => cellText(row[column])))]
    .map((line) => line.join("\t"))
    .join("\n");
}

function columnsOf(rows: Rows): readonly string[] {
  const columns = new Set<string>();
  for (const row of rows) for (const column of Object.keys(row)) columns.add(column);
  return [...columns];
}

function isNumber(value: unknown): boolean {
  return typeof value === "number" || typeof value === "bigint";
}

/** Data may hold what steers a terminal; it is shown, not obeyed. */
function cellText(value: unknown): string {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" ? value : writeJson(value);
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, (c) => {
    if (c === "\n") return "\\n";
    if (c === "\t") return "\\t";
    return `\\u${(c.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
  });
}

function shortened(text: string): string {
  if (Bun.stringWidth(text) <= CELL_WIDTH) return text;
  let short = "";
  let width = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    width += Bun.stringWidth(segment);
    if (width >= CELL_WIDTH) break;
    short += segment;
  }
  return `${short}…`;
}
