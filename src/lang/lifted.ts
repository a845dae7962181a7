/** The numbering both sides of the lifting of literals agree on. */

/**
 * Index of the first lifted literal as a parameter. How many parameters a request sends is not known when its text is
 * read, so lifted literals have numbers of their own, past every `$n` a text can hold.
 */
export const LIFTED_BASE = 1_000_000;
