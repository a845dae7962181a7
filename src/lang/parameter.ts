/** What stands for a value that the text does not hold: `$1`, `$jwt.sub`, and the marker of a lifted literal. */

import type { ClaimExpr, ParamExpr } from "./ast.ts";
import { LIFTED_BASE } from "./lifted.ts";
import { nameEnd, type Reader } from "./reader.ts";

/** `$1`; in a policy `$jwt.name`. */
export function readDollar(r: Reader): ParamExpr | ClaimExpr {
  const from = r.at;
  let i = from + 1;
  let number = 0;
  while (r.codeAt(i) >= 48 && r.codeAt(i) <= 57) {
    number = Math.min(number * 10 + (r.codeAt(i) - 48), LIFTED_BASE + 1);
    i++;
  }
  if (i > from + 1) {
    if (r.startsName(i)) r.refuse("syntax", "a parameter is `$` and a number: `$1`");
    if (r.dialect.claims) r.refuse("syntax", "a rule takes no numbered parameters: write `$jwt.` and a claim's name");
    if (number === 0) r.refuse("syntax", "`$0` is no parameter: they are numbered from `$1`");
    if (number > LIFTED_BASE) r.refuse("limit_passed", `a parameter past \`$${LIFTED_BASE}\``);
    r.moveTo(i);
    return { kind: "param", index: number - 1 };
  }
  const end = r.isWordAt("jwt", i) ? i + 3 : i;
  if (end === i || !r.dialect.claims) {
    const words = r.dialect.claims
      ? "a claim is `$jwt.` and its name"
      : end > i
        ? "`$jwt` stands for a token's claim in the rules of a policy alone"
        : "a parameter is `$` and a number: `$1`";
    r.refuse("syntax", words);
  }
  const nameFrom = end + 1;
  const claimEnd = r.codeAt(end) === 46 ? nameEnd(r.input, nameFrom) : nameFrom;
  if (claimEnd === nameFrom || r.codeAt(claimEnd) === 46) r.refuse("syntax", "a claim is `$jwt.` and one name");
  r.moveTo(claimEnd);
  return { kind: "claim", name: r.input.slice(nameFrom, claimEnd) };
}

/** `?3`, where the fourth literal was taken out of the text. */
export function readLifted(r: Reader): ParamExpr {
  let i = r.at + 1;
  let number = 0;
  while (r.codeAt(i) >= 48 && r.codeAt(i) <= 57) {
    number = number * 10 + (r.codeAt(i) - 48);
    i++;
  }
  r.moveTo(i);
  r.lifted++;
  return { kind: "param", index: LIFTED_BASE + number };
}
