/**
 * A refusal: the one way this server says no. It is made where the reason is known, carries a stable code, and the
 * code alone decides the HTTP status (the table below), so no other place maps errors to answers.
 * A broken assumption is not a refusal: it is an `assert` that stops the server.
 */

/** Every code with its HTTP status. Codes are part of the interface: `{"error": words, "code": code}`. */
export const REFUSAL_STATUS = {
  bad_request: 400,
  bad_json: 400,
  syntax: 400,
  too_deep: 400,
  unsupported: 400,
  unknown_function: 400,
  bad_value: 400,
  bad_parameter: 400,
  bad_clause: 400,
  bad_schema: 400,
  bad_header: 400,
  bad_key: 400,
  overflow: 400,
  division_by_zero: 400,
  limit_passed: 400,
  not_holdable: 400,
  unauthorized: 401,
  forbidden: 403,
  read_only: 403,
  unknown_collection: 404,
  unknown_field: 404,
  unknown_route: 404,
  unknown_consumer: 404,
  collection_exists: 409,
  id_taken: 409,
  unique_taken: 409,
  conflict: 409,
  gone: 410,
  unmet: 412,
  body_too_large: 413,
  key_reused: 422,
  disk_failed: 500,
  internal: 500,
  overloaded: 503,
  loading: 503,
  stopping: 503,
  not_reached: 504,
  memory_full: 507,
  disk_full: 507,
} as const;

export type RefusalCode = keyof typeof REFUSAL_STATUS;

/** Further members of the error body, e.g. `line`, `column`, `expected`, `at`, `completed`. */
export type RefusalData = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

export class Refusal extends Error {
  readonly code: RefusalCode;
  readonly data: RefusalData;
  readonly #words: string;
  readonly #hint: string;

  /** @param hint what is right, put behind the words; not for somebody who may not know of it */
  constructor(code: RefusalCode, words: string, data: RefusalData = {}, hint = "") {
    super(words + hint);
    this.name = "Refusal";
    this.code = code;
    this.data = data;
    this.#words = words;
    this.#hint = hint;
  }

  get status(): number {
    return REFUSAL_STATUS[this.code];
  }

  /** The same refusal with words before its own. */
  behind(words: string, data: RefusalData = {}): Refusal {
    return new Refusal(this.code, words + this.#words, { ...this.data, ...data }, this.#hint);
  }

  withoutHint(): Refusal {
    return new Refusal(this.code, this.#words, this.data);
  }

  /** The same refusal with more members in its body (a batch adds `at` and `completed`). */
  with(data: RefusalData): Refusal {
    return new Refusal(this.code, this.#words, { ...this.data, ...data }, this.#hint);
  }
}

/** What a piece of work gives; undefined where it is refused: a question that cannot be answered, and need not be. */
export function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}
