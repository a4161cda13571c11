// The book's formulas in JavaScript. Pure; tested against the Python package.

export const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

export function softmax(scores) {
  const top = Math.max(...scores);
  const powers = scores.map((s) => Math.exp(s - top));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((p) => p / total);
}

/** One query of one head: q (d_k), keys (n of d_k), values (n of d_v). */
export function attend(q, keys, values) {
  const products = keys.map((k) => dot(q, k));
  const scores = products.map((p) => p / Math.sqrt(q.length));
  const weights = softmax(scores);
  const output = values[0].map((_, i) =>
    dot(
      weights,
      values.map((v) => v[i]),
    ),
  );
  return { products, scores, weights, output };
}

export function parameters(dModel, numHeads, { dK, dV = dK, bias = true }) {
  const matrices = 2 * dModel * numHeads * (dK + dV);
  return matrices + (bias ? numHeads * (2 * dK + dV) + dModel : 0);
}

/** Two operations for each multiply and add; self-attention over n tokens. */
export function forwardFlops(dModel, numHeads, n, { dK, dV = dK }) {
  const projections = 2 * n * dModel * numHeads * (dK + dV);
  const attention = numHeads * n * n * (dK + dV);
  return 2 * (projections + attention);
}

export const scoreBytes = (numHeads, n, itemsize = 4) => numHeads * n * n * itemsize;

/** The divisors of dModel next to numHeads, below and above. */
export function nearestHeads(dModel, numHeads) {
  const divides = (h) => dModel % h === 0;
  let below = Math.min(numHeads, dModel);
  while (!divides(below)) below -= 1;
  let above = numHeads;
  while (above < dModel && !divides(above)) above += 1;
  return above > dModel || above === below ? [below] : [below, above];
}
