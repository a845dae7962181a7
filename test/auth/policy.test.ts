import { describe, expect, test } from "bun:test";
import { PolicyError, parsePolicy, type Rule } from "../../src/auth/policy.ts";
import { printExpr } from "../../src/lang/print.ts";
import { FUNCTION_NAMES } from "../../src/plan/functions.ts";

function rulesOf(text: string): readonly Rule[] {
  return parsePolicy(text, FUNCTION_NAMES).rules;
}

function ruleOf(text: string): Rule {
  const [rule, more] = rulesOf(text);
  if (rule === undefined || more !== undefined) throw new Error(`one rule was to be read of ${text}`);
  return rule;
}

describe("a policy", () => {
  test("has a rule a line, comments and blank lines", () => {
    const policy = parsePolicy(
      [
        "\ufeff# who may do what",
        "",
        "jobs  read,insert   where queue = $jwt.queue   for worker   # theirs",
        "jobs\tupdate(owner, run_at) where run_at <= now()\r",
        "* read where name != \"# no comment\" and t != 'a\\'# nor this'",
        "log append-only",
      ].join("\n"),
      FUNCTION_NAMES,
    );
    expect(policy.rules.map(({ collection, line, role, whereText }) => [collection, line, role, whereText])).toEqual([
      ["jobs", 3, "worker", "queue = $jwt.queue"],
      ["jobs", 4, null, "run_at <= now()"],
      ["*", 5, null, "name != \"# no comment\" and t != 'a\\'# nor this'"],
    ]);
    expect([...policy.appendOnly]).toEqual(["log"]);
    expect(parsePolicy("", FUNCTION_NAMES).rules).toEqual([]);
  });

  test("grants", () => {
    const grants = (text: string): string[] => [...ruleOf(text).grants].sort();
    expect(grants("a read")).toEqual(["read"]);
    expect(grants("a write")).toEqual(["delete", "insert", "update"]);
    expect(grants("* write,read")).toEqual(["delete", "insert", "read", "update"]);
    expect(grants("a expired,read")).toEqual(["expired", "read"]);
    expect(ruleOf("a update(x,y , z)").fields).toEqual(new Set(["x", "y", "z"]));
    expect(ruleOf("a update(x),update(y)").fields).toEqual(new Set(["x", "y"]));
    expect(ruleOf("a update(x),update").fields).toBeNull();
    expect(ruleOf("a read,update(x),delete").fields).toEqual(new Set(["x"]));
    expect(ruleOf("größe read").collection).toBe("größe");
  });

  test("roles stand last, whatever the filter's texts say", () => {
    expect(ruleOf("a read for keeper")).toMatchObject({ role: "keeper", where: null });
    expect(ruleOf('a read where t = "wait for me"')).toMatchObject({ role: null });
    expect(ruleOf('a read where t = "wait for me" for b-1.x')).toMatchObject({ role: "b-1.x" });
    expect(ruleOf("a read WHERE x = 1 FOR y")).toMatchObject({ role: "y", whereText: "x = 1" });
  });

  test("names the claims its filters read", () => {
    const rule = ruleOf("a read where x = $jwt.sub and (y in $jwt.rooms or z in [$jwt.rooms, 1]) or w > $jwt.level");
    expect([...rule.claims].sort()).toEqual(["level", "rooms", "sub"]);
    expect(printExpr(rule.where!)).toContain("$jwt.sub");
  });

  test("new. is read by rules that only update", () => {
    expect(ruleOf("a update where new.x = x + 1").readsNew).toBe(true);
    expect(ruleOf("a update(x) where new.x = x + 1").readsNew).toBe(true);
    // A field of that name is a field.
    expect(ruleOf("a read where new = 1").readsNew).toBe(false);
  });

  for (const [text, says] of [
    ["a", "line 1: a rule grants something"],
    ["a peek", "`peek` is no grant"],
    ["a READ", "`READ` is no grant"],
    ["a read, insert", "commas and no blanks"],
    ["a read insert", "`insert` is not understood"],
    ["a ,read", "commas and no blanks"],
    ["a read,", "commas and no blanks"],
    ["a update()", "update() names no field"],
    ["a update( )", "update() names no field"],
    ["a update(x", "not closed"],
    ["a update(x,)", "no field's name"],
    ["a update(x y)", "no field's name"],
    ["a update(id)", "an id never changes"],
    ["a update((x))", "names alone"],
    ["a update)x(", "closed that was not opened"],
    ["a update(x)y", "no grant"],
    ["a read where", "followed by a condition"],
    ["a read where x =", "line 1: in the filter, at character"],
    ["a read where x = 1 order x", "in the filter"],
    ["a read where x = $1", "no numbered parameters"],
    ["a read where x = $jwt.a.b", "one name"],
    ["a read where x in (get b select y)", "in (get ...) is not for rules"],
    ["a read where not (x = 1 or y in (get b select y))", "in (get ...) is not for rules"],
    ["a read where expired()", "grant expired"],
    ["a read where lenght(x) > 1", "no function `lenght`"],
    ["a read where count(x) > 1", "no function `count`"],
    ["a read where count(*) > 1", "no function `count`"],
    ["a read where new.x = 1", "update alone"],
    ["a read,update where new.x = 1", "update alone"],
    ["a write where new.x = 1", "update alone"],
    ["a insert where new.x = 1", "update alone"],
    ["a append-only for x", "takes no filter and no role"],
    ["a append-only where x = 1", "takes no filter and no role"],
    ["a append-only,read", "takes no filter and no role"],
    ["a-b read", "no collection's name"],
    ["1a read", "no collection's name"],
    ["_a read", "no collection's name"],
    ["a* read", "no collection's name"],
    ["a update\na append-only", "line 1: `a` is append-only"],
    ["b read\na append-only\na delete", "line 3: `a` is append-only"],
    ["* append-only\na update(x)", "line 2: `a` is append-only"],
    ["a read\n\nb raed", "line 3: `raed`"],
  ] as const) {
    test(`refused: ${JSON.stringify(text)}`, () => {
      expect(() => rulesOf(text)).toThrow(PolicyError);
      expect(() => rulesOf(text)).toThrow(says);
    });
  }

  test("the functions a rule is told of are those it may call", () => {
    expect(() => rulesOf("a read where lenght(x) > 1")).toThrow(/: known are now, .*, within$/);
  });

  test("write on what is append-only lets rows in, and nothing else", () => {
    const { rules, appendOnly } = parsePolicy("a read,write\na append-only", FUNCTION_NAMES);
    expect(rules).toHaveLength(1);
    expect(appendOnly.has("a")).toBe(true);
  });
});
