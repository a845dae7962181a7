/** The word somebody most likely meant, for "did you mean". */

/** Longer words than this are not looked at: nobody mistypes one, and the work grows with the square. */
const LONGEST = 64;

/**
 * The candidate nearest to `word`, blind to case; undefined when none is near. A candidate is near if a letter left out,
 * put in, changed, or swapped with its neighbour makes the one from the other, once for words of up to four letters and
 * twice for longer ones. Of candidates equally near the first wins.
 */
export function nearestWord(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length === 0 || word.length > LONGEST) return undefined;
  const sought = word.toLowerCase();
  let nearest: string | undefined;
  let least = sought.length <= 2 ? 0 : sought.length <= 4 ? 1 : 2;
  least++;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - sought.length) >= least) continue;
    const distance = editDistance(sought, candidate.toLowerCase());
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

/** Letters left out, put in, changed, or swapped with their neighbour. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      let cost = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (isSame ? 0 : 1));
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwapped) cost = Math.min(cost, before[j - 2]! + 1);
      next.push(cost);
    }
    before = row;
    row = next;
  }
  return row[b.length]!;
}
