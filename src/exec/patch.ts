/** `{field: value, json.path: value}` over a row: what a `set`, and an upsert's `else set`, make of it. */

import { Refusal } from "../base/refusal.ts";
import type { Assignment } from "../lang/ast.ts";
import type { Env } from "../plan/env.ts";
import { type Eval, type ExpressionCompiler, fieldRef, memberJson } from "../plan/expression.ts";
import type { Table } from "../store/table.ts";
import { jsonPathSet, tooDeep } from "../value/json.ts";
import { fitCell } from "../value/types.ts";
import type { Cell, FieldType, Row } from "../value/value.ts";

interface Step {
  readonly slot: number;
  readonly keys: readonly string[];
  readonly type: FieldType;
  readonly name: string;
  readonly eval: Eval;
  readonly constant: boolean;
  readonly required: boolean;
}

export class Patch {
  readonly #steps: readonly Step[];
  /** Slots it writes. */
  readonly slots: ReadonlySet<number>;

  constructor(table: Table, assignments: readonly Assignment[], compiler: ExpressionCompiler) {
    const seen = new Set<string>();
    this.#steps = assignments.map((assignment) => {
      const { field, keys } = assignment;
      const name = [field, ...keys].join(".");
      if (field === "id") throw new Refusal("bad_clause", "an id is given once: set cannot change it");
      const ref = fieldRef(table, field, keys);
      if (seen.has(name)) throw new Refusal("bad_clause", `\`${name}\` is set twice`);
      seen.add(name);
      const compiled = compiler.compile(assignment.value);
      return {
        slot: ref.slot,
        keys,
        type: ref.type,
        name,
        eval: compiled.eval,
        constant: compiled.constant,
        required: table.schema.fields[ref.slot - 1]?.required ?? false,
      };
    });
    this.slots = new Set(this.#steps.map((step) => step.slot));
  }

  /** Begins a run: constants are fitted once, by the first row, and serve all. */
  begin(env: Env): (row: Row) => Row {
    const steps = this.#steps;
    const fitted: (Cell | undefined)[] = new Array(steps.length);
    return (row) => {
      const written = row.slice();
      for (let at = 0; at < steps.length; at++) {
        const step = steps[at] as Step;
        if (step.keys.length > 0) {
          written[step.slot] = setPath(written[step.slot] as string | null, step, memberJson(step.eval(row, env)));
          continue;
        }
        let cell = fitted[at];
        if (cell === undefined) {
          const value = step.eval(row, env);
          cell =
            step.type.kind === "int" && Number.isSafeInteger(value)
              ? (value as number)
              : fitCell(step.type, value, `\`${step.name}\``);
          if (cell === null && step.required) throw missing(step.name);
          if (step.constant) fitted[at] = cell;
        }
        written[step.slot] = cell;
      }
      return written;
    };
  }
}

function setPath(cell: string | null, step: Step, value: string): string {
  const text = jsonPathSet(cell, step.keys, value);
  if (tooDeep(text)) throw new Refusal("too_deep", `\`${step.name}\` would nest too deep`);
  return text;
}

export function missing(name: string): Refusal {
  return new Refusal("bad_value", `\`${name}\` is required: it takes no null`);
}

/** Runs `work` for one row; a refusal made by the row's values names it. */
export function atRow<T>(row: Row, work: (row: Row) => T): T {
  try {
    return work(row);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new Refusal(error.code, `${error.message} (row ${String(row[0])})`, error.data);
  }
}
