/** Tables as text: aligned for a terminal, and good as markdown as they stand. */

/** The first column is words, the others figures. */
export function tableText(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, at) => Math.max(title.length, ...rows.map((row) => row[at]?.length ?? 0)));
  const line = (cells: readonly string[]): string => {
    const padded = cells.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)));
    return `| ${padded.join(" | ")} |`;
  };
  const rule = `|${widths.map((width, at) => (at === 0 ? `${"-".repeat(width + 2)}` : `${"-".repeat(width + 1)}:`)).join("|")}|`;
  return [line(head), rule, ...rows.map(line)].join("\n");
}

/** `12 300`: three figures that say something. */
export function rounded(value: number): string {
  if (!Number.isFinite(value)) return "-";
  if (value >= 1_000) {
    const unit = 10 ** (Math.floor(Math.log10(value)) - 2);
    return String(Math.round(value / unit) * unit).replace(/\B(?=(\d{3})+$)/g, " ");
  }
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}
