// The book's formulas in JavaScript. Pure; tested against the Python package.

export const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

export const softmax = (scores) =>
  maskedSoftmax(
    scores,
    scores.map(() => true),
  );

/** Weights over the keys that may be looked at; zeros where there are none. */
export function maskedSoftmax(scores, allowed) {
  const top = Math.max(...scores.filter((_, i) => allowed[i]));
  const powers = scores.map((s, i) => (allowed[i] ? Math.exp(s - top) : 0));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((p) => p / (total || 1));
}

/** The values, each times its weight, added up. */
export const average = (weights, values) =>
  values[0].map((_, i) =>
    dot(
      weights,
      values.map((v) => v[i]),
    ),
  );

/** One query of one head: q (d_k), keys (n of d_k), values (n of d_v). */
export function attend(q, keys, values, temperature = Math.sqrt(q.length)) {
  const products = keys.map((k) => dot(q, k));
  const scores = products.map((p) => p / temperature);
  const weights = softmax(scores);
  return { products, scores, weights, output: average(weights, values) };
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
