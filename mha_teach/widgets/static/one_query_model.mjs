// OneQuery, the part that needs no page: words, numbers, the picture to save.

import { attend } from "./formulas.mjs";
import { listed, number } from "./kit.mjs";

export const TEXT = {
  intro:
    "Move the query. Drag it, or press the arrow keys while it has the focus: a step is " +
    "0.1, with Shift 0.5.",
  sliders: ["query, x", "query, y"],
  at: (x, y) => `x ${x}, y ${y}`,
  temperature: "Temperature",
  score: (name, terms, product) =>
    `<b>Score.</b> Multiply query and key number by number, and add. For ${name}: ` +
    `${terms} = ${product}.`,
  divided: (t, score) => ` Divide by the temperature, ${t}: ${score}.`,
  weight: (name, lead, next, times) =>
    `<b>Weight.</b> Softmax turns a lead into a ratio. ${name} is ${lead} ahead of ${next}: ` +
    `it gets ${times ? `e<sup>${lead}</sup> = ${times}` : "more than 1,000"} times the weight.`,
  sum: (terms, output) => `<b>Output.</b> Add up weight × value. ${terms} = ${output}.`,
  more: "…",
  equal: "All scores are equal",
  zero: "The query is 0",
  same: (why, n, weight) =>
    `${why}, so each of ${n} keys gets the same weight, ${weight}. ` +
    "The output is the plain mean of the values.",
  one: (name, weight, why) => `${name} gets the most, ${weight}: ${why}.`,
  many: (names, weight, why) => `${names} get the most, ${weight} each: ${why}.`,
  far: [
    "they reach equally far in the query's direction",
    "it reaches furthest in the query's direction",
  ],
  away: [
    "no key points the query's way, and they point away least",
    "no key points the query's way, and it points away least",
  ],
  alsoNearest: "It is also the nearest.",
  nearest: (n, names, weights) =>
    `The nearest ${n === 1 ? "is" : "are"} ${names}, with ${weights}.`,
  hard: [
    "The look-up is nearly hard.",
    (t) => `At temperature ${t} the look-up is nearly hard.`,
  ],
  flat: [
    "The weights are nearly equal.",
    (t) => `At temperature ${t} the weights are nearly equal.`,
  ],
  and: (most, last) => `${most} and ${last}`,
  legend: [
    "Arrow: key. Disc: value; its area is the weight. Ring: query. Diamond: output.",
    "Dashed circle: through the nearest key. Dashed line: through the key that reaches " +
      "furthest along the query.",
  ],
  marks: [
    ["key", "→", "key"],
    ["value", "●", "value; its area is the weight"],
    ["asks", "○", "query"],
    ["output", "◆", "output"],
    ["asks dashed circle", "", "through the nearest key"],
    ["key dashed", "", "through the key that reaches furthest along the query"],
  ],
  columns: ["key", "score", "weight", "distance"],
  header: ["name", "key", "value", "score", "weight", "distance"],
  fields: [
    "name",
    "key x",
    "key y",
    "value x",
    "value y",
    "score",
    "weight",
    "distance",
  ],
  value: "value ",
  where: (query) => `query ${query}`,
  setting: (query, t) => `query ${query}, temperature ${t}`,
  output: (output) => `output = Σ weight × value = ${output}`,
  caption: (query, t, output) =>
    `Query ${query}, temperature ${t}: the output is ${output}`,
  table: "Show as table",
};

const TIE = 1e-9;
const [HARD, FLAT] = [0.99, 0.05];
const spread = (list) => Math.max(...list) - Math.min(...list);

export const point = (at, digits = 2) =>
  `(${at.map((x) => number(x, digits)).join(", ")})`;

/** Scores, weights, distances, output; who gets the most, and who is nearest. */
export function look({ keys, values }, { x, y, temperature }) {
  const { products, scores, weights, output } = attend(
    [x, y],
    keys,
    values,
    temperature,
  );
  const distances = keys.map(([kx, ky]) =>
    Math.sqrt((kx - x) * (kx - x) + (ky - y) * (ky - y)),
  );
  const [top, radius] = [Math.max(...scores), Math.min(...distances)];
  const places = (list, best) =>
    [...list.keys()].filter((i) => Math.abs(list[i] - best) < TIE);
  return {
    products,
    scores,
    weights,
    distances,
    output,
    winners: places(scores, top),
    nearest: places(distances, radius),
    radius,
  };
}

export function finding(data, now) {
  const { scores, weights, winners, nearest } = look(data, now);
  const names = (places) => listed(
    places.map((i) => data.labels[i]),
    TEXT.and,
  );
  const weight = number(weights[winners[0]]);
  if (spread(scores) < TIE) {
    const why = now.x || now.y ? TEXT.equal : TEXT.zero;
    return TEXT.same(why, data.keys.length, weight);
  }
  const one = winners.length === 1;
  const why = (Math.max(...scores) > TIE ? TEXT.far : TEXT.away)[Number(one)];
  const parts = [(one ? TEXT.one : TEXT.many)(names(winners), weight, why)];
  if (one && nearest.includes(winners[0])) parts.push(TEXT.alsoNearest);
  else {
    const shares = listed(
      nearest.map((i) => number(weights[i])),
      TEXT.and,
    );
    parts.push(TEXT.nearest(nearest.length, names(nearest), shares));
  }
  const said = ([plainly, at], cause) => (cause ? at(now.temperature) : plainly);
  if (Math.max(...weights) > HARD) parts.push(said(TEXT.hard, now.temperature < 1));
  else if (spread(weights) < FLAT) parts.push(said(TEXT.flat, now.temperature > 1));
  return parts.join(" ");
}

/** The numbers of each key, as text. */
export function rowsOf(
  { keys, values, labels },
  { scores, weights, distances },
  digits,
) {
  const write = (x) => number(x, digits);
  return labels.map((label, i) => [
    label,
    point(keys[i], digits),
    point(values[i], digits),
    ...[scores[i], weights[i], distances[i]].map(write),
  ]);
}
