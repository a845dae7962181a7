/**
 * How much is worked out row by row before lines look for themselves instead. No bound changes who gets what, only what it
 * costs; a test sets them to next to nothing.
 */

export interface Bounds {
  /** Questions whether a line wants a row just shown, in one round. */
  readonly asks: number;
  /** Rows shown that lines want by distance, for each such line. */
  readonly rowsALine: number;
  /** The same while lines that rank rows otherwise bid for some of them. */
  readonly mixedRows: number;
  /** Rows of a first look that are kept, so that the next is known when the first goes to another; from 1. */
  readonly keptRows: number;
  /** Rows that came due at once. */
  readonly dueRows: number;
  /** Rows written since the last round that are remembered by id. */
  readonly writtenRows: number;
}

export const BOUNDS: Bounds = {
  asks: 4_096,
  rowsALine: 16,
  mixedRows: 64,
  keptRows: 32,
  dueRows: 1_024,
  writtenRows: 65_536,
};
