/**
 * The audit log: who was refused (401, 403), and what was made of the collections, a JSON line each. No value of a
 * parameter, no literal of a statement, no query string stands in it.
 *
 *     {"at": iso, "event": "refused", "status", "code", "why", "method", "path", "address", "kind", "sub"}
 *     {"at": iso, "event": "schema" | "maintenance", "statement", "address", "kind", "sub"}
 *     {"at": iso, "event": "skipped", "lines": n}
 *
 * Whoever may only be refused can still write to it, so it takes AUDIT_LINES a second and says how many it left out.
 */

import { AUDIT_LINES } from "../base/limits.ts";
import type { Refusal } from "../base/refusal.ts";
import { parseStatement } from "../lang/parse.ts";
import { printStatement } from "../lang/print.ts";
import { formatTime } from "../value/time.ts";
import type { Identity } from "./gate.ts";

export interface AuditOptions {
  /** Takes a line with its end. */
  readonly write: (line: string) => void;
  /** Epoch ms. */
  readonly now: () => number;
  readonly addressOf: (request: Request) => string;
}

/** Who asks; null where that was not found out. */
type Who = Pick<Identity, "kind"> & { readonly scope: { readonly subject: string } | null };

export class Audit {
  readonly #options: AuditOptions;
  #second = Number.NaN;
  #lines = 0;
  #skipped = 0;

  constructor(options: AuditOptions) {
    this.#options = options;
  }

  refused(request: Request, who: Who | null, refusal: Refusal): void {
    const { status, code, message } = refusal;
    const path = new URL(request.url).pathname;
    this.#write({ event: "refused", status, code, why: message, method: request.method, path }, request, who);
  }

  /**
   * @param text a statement about a collection and not its rows, that was run
   * @param changed whether it made or changed something
   */
  ran(request: Request, who: Who | null, text: string, changed: boolean): void {
    const statement = parseStatement(text);
    const event = statement.kind === "compact" ? "maintenance" : "schema";
    if (event === "schema" && !changed) return;
    this.#write({ event, statement: printStatement(statement) }, request, who);
  }

  #write(members: Readonly<Record<string, unknown>>, request: Request, who: Who | null): void {
    const now = this.#options.now();
    const second = Math.floor(now / 1_000);
    if (second !== this.#second) {
      if (this.#skipped > 0) this.#line(now, { event: "skipped", lines: this.#skipped });
      this.#second = second;
      this.#lines = 0;
      this.#skipped = 0;
    }
    if (++this.#lines > AUDIT_LINES) {
      this.#skipped++;
      return;
    }
    const sub = who === null || who.scope === null || who.scope.subject === "" ? null : who.scope.subject;
    const address = this.#options.addressOf(request);
    this.#line(now, { ...members, address, kind: who?.kind ?? null, sub });
  }

  #line(now: number, members: Readonly<Record<string, unknown>>): void {
    this.#options.write(`${JSON.stringify({ at: formatTime(now), ...members })}\n`);
  }
}
