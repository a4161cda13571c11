// Heads, the part that needs no page: words, numbers, shapes.

import { count, halves, number, percent, reshape } from "./kit.mjs";
import {
  attend,
  forwardFlops,
  nearestHeads,
  parameters,
  scoreBytes,
} from "./formulas.mjs";

const heads = (n) => `${n} ${n === 1 ? "head" : "heads"}`;

export const TEXT = {
  title: "More heads, or wider ones?",
  intro: (t) =>
    `One attention layer, d_model = ${t.d_model}, trained for ${t.steps} steps. The last ` +
    `of ${t.positions + 1} tokens points at two positions, a and b. The layer must name ` +
    `the letter at a and the letter at b; guessing is right in ${percent(t.guess)} of cases.`,
  landscape: "Number and width of heads",
  corner: "heads ↓ d_k →",
  landscapeNote:
    "Both letters right: the mean, and a dot for each run. Choose a setting.",
  setting: (h, w, share) => `${heads(h)} of width ${w}: ${share}`,
  finding: (h, w, share, spread, other, otherShare) =>
    `${heads(h)} of width ${w}: both letters right in ${share} of cases, ${spread}; ` +
    `${heads(other)} of the same width: ${otherShare}.`,
  everyRun: (runs) => `in each of ${runs} runs`,
  spread: (low, high, runs) => `from ${low} to ${high} over ${runs} runs`,
  costs: ["parameters", "FLOPs, one pass", "bytes of scores"],
  tokens: (n) => `${n} tokens`,
  pipeline: "The shapes, step by step",
  pipelineNote:
    "All tokens ask, as in self-attention; the task reads the output of the last. To " +
    "scale: a row is a token. Blue: the chosen head. Bold: what h and d_k change.",
  maps: "Where the last token looks",
  mapsNote: (seed) =>
    `Its weights, one line a head, in the run with seed ${seed}. Choose a head and a position.`,
  cell: (head, at, token, mark, weight) =>
    `head ${head}, position ${at} ${token}${mark && `, asked as ${mark}`}: weight ${weight}`,
  asking: "the asking token",
  answers: "What this model answers",
  answer: (slot, at, letter, p, right) =>
    `${slot}: position ${at} → <b>${letter}</b> (${p}), ${right ? "right" : "wrong"}`,
  follow: (head, at, token) =>
    `Follow one number: head ${head}, position ${at} (${token})`,
  terms: ["q", "k", "q × k"],
  parts: ["v", "weight × v", "head_output"],
  product: (x) => `Multiply q and k feature by feature, and add: <b>${x}</b>`,
  score: (root, x) => `Divide by √d_k = ${root}: the score is <b>${x}</b>`,
  weight: (n, score, top, power, total, x) =>
    `Softmax. Take off the largest score: e<sup>${score} − ${top}</sup> = ${power}. ` +
    `Divide by the sum over ${n} positions, ${total}: the weight is <b>${x}</b>`,
  values: "Times v. Add the same over all positions, and you have head_output",
  any: "Any numbers: must d_k be d_model / h?",
  sizes: ["d_model", "num_heads", "d_k"],
  fields: ["d_model", "num_heads", "d_k, if you like"],
  convention: "d_model / h",
  wrongSize: (name, typed, most) =>
    `${name} = ${typed} does not work: choose a whole number from 1 up, at most ${most}.`,
  inner: (h, width, d) =>
    h * width === d
      ? `Together the heads are ${h} · ${width} = ${d} wide, as wide as x.`
      : `Together the heads are ${h} · ${width} = ${h * width} wide, and W^O maps them back to ${d}.`,
  free: (h, width) => `d_k = ${width} is your choice, for each of ${heads(h)}.`,
  divides: (d, h) => `${d} / ${h} = ${d / h}: the convention d_k = d_model / h.`,
  doesNotDivide: (d, h, near, width) =>
    `${d} / ${h} = ${quotient(d, h)} is no whole number, so there is no default d_k. ` +
    `The nearest numbers of heads that divide ${d}: ${near}. But d_k = d_model / h is a ` +
    `convention, not a law: choose d_k = ${width}, say.`,
  table: "Show as table",
  settings: "All settings",
  weights: "Weights of the last token",
  header: ["head", "position", "token", "q · k", "score", "weight"],
};

export const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;

/** The numbers of heads and the widths that the grid holds. */
export function axes({ cells }) {
  const sorted = (key) =>
    [...new Set(Object.values(cells).map((cell) => cell[key]))].sort((a, b) => a - b);
  return { numbers: sorted("num_heads"), widths: sorted("d_k") };
}

export const cellOf = (data, h, w) => data.cells[`h${h}_dk${w}`];

export const share = (data, h, w) => percent(mean(cellOf(data, h, w).accuracy));

/** What the last token sees: q, k, v, scores, weights, … of each head. */
export function attention(data, h, w) {
  const { q, k, v } = cellOf(data, h, w);
  const n = data.task.positions + 1;
  const keys = reshape(halves(k), n, w);
  const values = reshape(halves(v), n, data.task.d_v);
  return reshape(halves(q), w).map((query, i) => ({
    q: query,
    k: keys[i],
    v: values[i],
    ...attend(query, keys[i], values[i]),
  }));
}

export function costs(task, h, w) {
  const widths = { dK: w, dV: task.d_v };
  const n = task.positions + 1;
  return [
    parameters(task.d_model, h, { ...widths, bias: false }),
    forwardFlops(task.d_model, h, n, widths),
    scoreBytes(h, n),
  ];
}

/** name, code, and for each tensor: label, shape, axes. */
export function steps(task, h, w) {
  const [n, d, v] = [task.positions + 1, task.d_model, task.d_v];
  const qk = (shape, names) => ["q, k", shape, names];
  const only = (shape, names) => [["", shape, names]];
  return [
    ["x", TEXT.tokens(n), only([n, d], "token, d_model")],
    [
      "q, k, v",
      "q_proj(x) …",
      [qk([n, h * w], "token, h·d_k"), ["v", [n, h * v], "token, h·d_v"]],
    ],
    [
      "split",
      "split_heads(q) …",
      [qk([h, n, w], "head, token, d_k"), ["v", [h, n, v], "head, token, d_v"]],
    ],
    ["scores", "q @ k.mT / √d_k", only([h, n, n], "head, query, key")],
    ["weights", "softmax(scores)", only([h, n, n], "head, query, key")],
    ["head_outputs", "weights @ v", only([h, n, v], "head, query, d_v")],
    ["merge", "merge_heads(…)", only([n, h * v], "query, h·d_v")],
    ["output", "out_proj(merged)", only([n, d], "query, d_model")],
  ];
}

export function finding(data, h, w) {
  const { accuracy } = cellOf(data, h, w);
  const [low, high] = [Math.min(...accuracy), Math.max(...accuracy)].map(percent);
  const runs = accuracy.length;
  const spread = low === high ? TEXT.everyRun(runs) : TEXT.spread(low, high, runs);
  const other = h === 1 ? 2 : 1;
  return TEXT.finding(h, w, share(data, h, w), spread, other, share(data, other, w));
}

export const MOST = 99_999;

/** What is wrong with the sizes typed, an empty one aside; "" where nothing is. */
export function wrongSize(typed) {
  const isSize = (x) => Number.isInteger(x) && x >= 1 && x <= MOST;
  const at = typed.findIndex((text) => text && !isSize(Number(text)));
  return at < 0 ? "" : TEXT.wrongSize(TEXT.sizes[at], typed[at], count(MOST));
}

/** d / h, which is not whole, with the digits that it takes to see so. */
function quotient(d, h) {
  let digits = 2;
  while (Number.isInteger(Number((d / h).toFixed(digits)))) digits += 1;
  return number(d / h, digits);
}

/** Why d_model and h fit, or what to do when they do not; `dK` 0 is the default. */
export function explain(d, h, dK) {
  const width = dK || Math.max(1, Math.floor(d / h));
  const near = nearestHeads(d, h).map((n) => `${n} (d_k = ${d / n})`);
  const first = dK
    ? TEXT.free(h, width)
    : d % h === 0
      ? TEXT.divides(d, h)
      : TEXT.doesNotDivide(d, h, near.join(" and "), width);
  return { width, text: `${first} ${TEXT.inner(h, width, d)}` };
}
