/**
 * Damage: bytes in a data directory that no crash can have left so. It stops the start, since going on would answer
 * without rows that were confirmed; it names the place and what can be done.
 */

/** There while a repair replaces files: a start would take what it finds for all there is. */
export const REPAIR_NAME = "repair";

export class Damage extends Error {
  override readonly name = "Damage";
  readonly file: string;
  /** Where in the file, in bytes from its start. */
  readonly offset: number;
  /** What was found there. */
  readonly found: string;

  constructor(file: string, offset: number, found: string) {
    super(
      `${file} is damaged at offset ${offset}: ${found}. Nothing was changed. ` +
        "`scripts/check DIR` lists all damage; restore a backup (`scripts/restore`), or let `scripts/repair DIR` " +
        "say what would be lost and cut the log there.",
    );
    this.file = file;
    this.offset = offset;
    this.found = found;
  }
}
