/**
 * The Prometheus text format, version 0.0.4: families of samples, each with its help and type. Written here rather than
 * taken from a package: see docs/dependencies.md for what that costs a request.
 */

export const EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export type Labels = readonly (readonly [name: string, value: string])[];

const NONE: Labels = [];

export class Exposition {
  #text = "";

  /** Opens a family; the samples that follow belong to it. */
  family(name: string, type: "counter" | "gauge" | "histogram", help: string): void {
    this.#text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
  }

  sample(name: string, labels: Labels, value: number): void {
    this.#text += `${name}${labelText(labels)} ${numberText(value)}\n`;
  }

  /** A family of one sample without labels. */
  single(name: string, type: "counter" | "gauge", help: string, value: number): void {
    this.family(name, type, help);
    this.sample(name, NONE, value);
  }

  toString(): string {
    return this.#text;
  }
}

function labelText(labels: Labels): string {
  if (labels.length === 0) return "";
  return `{${labels.map(([name, value]) => `${name}="${escaped(value)}"`).join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function numberText(value: number): string {
  if (value === Infinity) return "+Inf";
  if (value === -Infinity) return "-Inf";
  return String(value);
}
