/** A call that has its effect the first time alone: what is let go of twice was let go of once. */
export function once(run: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    run();
  };
}
