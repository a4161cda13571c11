// OneQuery, the drawings: each function returns the text of some SVG. The plane is the
// same on the page and in the picture to save, each in its own colours; _plane.py and
// one_query.py draw the latter too, to the letter.

import { escape, number, rect, short, words } from "./kit.mjs";
import { TEXT, look, point } from "./one_query_model.mjs";

export const [SIDE, UNIT] = [330, 50];
const ORIGIN = [0, 0];
const DASHES = 'stroke-dasharray="5 4"';

const SAVED = {
  ink: "#1c2128",
  mute: "#59616c",
  line: "#d9dee5",
  paper: "#ffffff",
  accent: "#0b5cad",
  warm: "#b3541e",
};
export const ON_PAGE = Object.fromEntries(
  Object.keys(SAVED).map((name) => [name, `var(--${name})`]),
);

// ---- the plane

/** Keys as arrows, values as discs whose area is the weight, and the rest. */
export function plane({ keys, values, labels }, query, seen, paint) {
  const { weights, output, radius, winners } = seen;
  const apart = JSON.stringify(keys) !== JSON.stringify(values);
  const radii = weights.map((weight) => 26 * Math.sqrt(weight));
  const { ink, mute, accent, warm, paper } = paint;
  const area = `fill="${mute}" fill-opacity="0.1" ${stroke(mute, 1)}`;
  const disc = `fill="${accent}" fill-opacity="0.25" ${stroke(accent, 1)}`;
  const named = (at, i, r, text, fill) =>
    name(at, r, text + short(labels[i]), fill, paper);
  return [
    ...squares(paint),
    `<path d="${way(hull(values))}z" ${area}/>`,
    ...guides(query, keys[winners[0]], radius, paint),
    ...values.map((value, i) => circle(value, radii[i], disc)),
    ...(apart ? values.map((value) => circle(value, 2.5, `fill="${mute}"`)) : []),
    ...keys.map((key) => arrow(key, accent)),
    `<path d="${way([ORIGIN, query])}" ${stroke(warm, 2)}/>`,
    diamond(output, ink, paper),
    circle(query, 9, `fill="none" ${stroke(warm, 4)}`),
    ...(apart
      ? values.map((value, i) => named(value, i, radii[i], TEXT.value, mute))
      : []),
    ...keys.map((key, i) => named(key, i, apart ? 0 : radii[i], "", ink)),
  ];
}

function squares({ line, mute }) {
  const [low, long] = [SIDE / 2 - 3 * UNIT, 6 * UNIT];
  const places = [-3, -2, -1, 0, 1, 2, 3].map((n) => SIDE / 2 + n * UNIT);
  const lines = places.map((at) => `M${at} ${low}v${long}M${low} ${at}h${long}`);
  const label = { size: 11, fill: mute };
  return [
    `<path d="${lines.join("")}" ${stroke(line, 1)}/>`,
    `<path d="${lines[3]}" ${stroke(mute, 1)}/>`,
    words(315, 179, 3, { ...label, anchor: "middle" }),
    words(170, 19, 3, label),
  ];
}

/** The circle that holds no key, and the line of the winner's score. */
function guides([x, y], winner, radius, { warm, accent }) {
  const empty = `fill="none" ${stroke(warm, 1)} ${DASHES}`;
  const parts = [circle([x, y], UNIT * radius, empty)];
  const length = Math.sqrt(x * x + y * y);
  if (length > 0) {
    const [u, v] = [(-9 * y) / length, (9 * x) / length];
    const ends = [-1, 1].map((s) => [winner[0] + s * u, winner[1] + s * v]);
    parts.push(`<path d="${way(ends)}" ${stroke(accent, 1)} ${DASHES}/>`);
  }
  return parts;
}

function arrow(key, colour) {
  const length = Math.sqrt(key[0] * key[0] + key[1] * key[1]);
  if (length < 0.25) return circle(key, 4, `fill="${colour}"`);
  const [u, v] = [key[0] / length, key[1] / length];
  const back = [key[0] - 0.18 * u, key[1] - 0.18 * v];
  const sides = [0.08, -0.08].map((s) => [back[0] - s * v, back[1] + s * u]);
  const d = `${way([ORIGIN, back])}${way([key, ...sides])}z`;
  return `<path d="${d}" fill="${colour}" ${stroke(colour, 2)}/>`;
}

/** A name beyond a disc, seen from the origin, and inside the picture. */
function name(at, radius, text, fill, paper) {
  const length = Math.sqrt(at[0] * at[0] + at[1] * at[1]);
  const [u, v] = length > 0 ? [at[0] / length, at[1] / length] : [0.7, 0.7];
  const letters = Array.from(text, (letter) =>
    letter.codePointAt(0) < 0x2e80 ? 4 : 7,
  );
  const half = letters.reduce((sum, width) => sum + width, 0);
  const [px, py] = place(at);
  const gap = radius + 11;
  const x = Math.min(SIDE - half, Math.max(half, px + u * (gap + half - 4)));
  const y = Math.min(SIDE - 4, Math.max(12, py - v * gap + 4));
  const halo = `stroke="${paper}" stroke-width="3" paint-order="stroke"`;
  return `<g ${halo}>${words(round(x), round(y), text, { fill, anchor: "middle" })}</g>`;
}

function diamond(at, fill, paper) {
  const [x, y] = place(at);
  const d = `M${round(x)} ${round(y - 8)}l8 8l-8 8l-8 -8z`;
  return `<path d="${d}" fill="${fill}" ${stroke(paper, 2)}/>`;
}

function circle(at, radius, style) {
  const [x, y] = place(at).map(round);
  return `<circle cx="${x}" cy="${y}" r="${round(radius)}" ${style}/>`;
}

const stroke = (colour, width) =>
  `stroke="${colour}" stroke-width="${width}" stroke-linejoin="round"`;

const way = (points) =>
  `M${points.map((at) => place(at).map(round).join(" ")).join("L")}`;

const place = ([x, y]) => [SIDE / 2 + UNIT * x, SIDE / 2 - UNIT * y];
const round = (length) => Math.floor(10 * length + 0.5) / 10;

/** The corners of the convex hull, anticlockwise. */
function hull(points) {
  const ordered = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const low = chain(ordered);
  const high = chain(ordered.reverse());
  return [...low.slice(0, -1), ...high.slice(0, -1)];
}

/** Walks along points, and keeps those where the way turns left. */
function chain(ordered) {
  const corners = [];
  for (const at of ordered) {
    while (corners.length > 1 && turn(...corners.slice(-2), at) <= 0) corners.pop();
    corners.push(at);
  }
  return corners;
}

const turn = (a, b, c) => (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);

// ---- what becomes of each key

/** A line a key: the longer its bar, the more it gets. */
export function rows({ labels }, { scores, weights, distances, winners, nearest }) {
  const head = TEXT.columns.map((text) => `<th scope="col">${text}</th>`);
  const line = (label, i) =>
    `<tr class="${winners.includes(i) ? "most" : ""}"><th scope="row">${escape(label)}</th>` +
    `<td>${number(scores[i])}</td><td><div class="bar"><span>` +
    `<i style="width:${100 * weights[i]}%"></i></span>${number(weights[i])}</div></td>` +
    `<td class="${nearest.includes(i) ? "near" : ""}">${number(distances[i])}</td></tr>`;
  return `<thead><tr>${head.join("")}</tr></thead><tbody>${labels.map(line).join("")}</tbody>`;
}

/** The way from scores to weights to the output, with the numbers of the moment. */
export function steps({ keys, labels }, { x, y, temperature }, seen) {
  const { products, scores, weights, output, winners } = seen;
  const most = winners[0];
  const names = labels.map(escape);
  const factor = (a, digits) => (a < 0 ? `(${number(a, digits)})` : number(a, digits));
  const terms = [x, y].map((a, i) => `${factor(a, 1)} × ${factor(keys[most][i], 2)}`);
  const product = number(products[most]);
  const others = [...scores.keys()].filter((i) => i !== most);
  const next = others.reduce((a, b) => (scores[b] > scores[a] ? b : a));
  const lead = scores[most] - scores[next];
  const times = lead > 7 ? "" : number(Math.exp(lead));
  const told = [...names.keys()].filter((i) => weights[i] >= 0.005);
  const sum = told.map((i) => `${number(weights[i])} × ${names[i]}`);
  if (sum.length < names.length) sum.push(TEXT.more);
  return [
    TEXT.score(names[most], terms.join(" + "), product) +
      (temperature === 1 ? "" : TEXT.divided(temperature, number(scores[most]))),
    TEXT.weight(names[most], number(lead), names[next], times),
    TEXT.sum(sum.join(" + "), point(output)),
  ]
    .map((text) => `<li>${text}</li>`)
    .join("");
}

// ---- the drawing to save

const small = { size: 11, fill: SAVED.mute };

export function drawing(data, now) {
  const seen = look(data, now);
  const parts = [
    `<svg x="10" y="10" width="${SIDE}" height="${SIDE}">`,
    ...plane(data, [now.x, now.y], seen, SAVED),
    "</svg>",
    ...lines(data, now, seen),
    ...TEXT.legend.map((line, i) => words(24, 362 + 18 * i, line, small)),
  ];
  return { width: 700, height: 392, parts };
}

/** A line a key, and the sum. */
function lines({ labels }, { x, y, temperature }, seen) {
  const end = { anchor: "end" };
  const heads = [
    words(370, 44, TEXT.columns[0], small),
    words(505, 44, TEXT.columns[1], { ...small, ...end }),
    words(520, 44, TEXT.columns[2], small),
    words(688, 44, TEXT.columns[3], { ...small, ...end }),
  ];
  const line = (label, i) => {
    const at = 72 + 28 * i;
    const width = Math.floor(80 * seen.weights[i] + 0.5);
    return [
      ...(seen.winners.includes(i) ? [rect(360, at - 19, 332, 28, "#e3eefa")] : []),
      words(370, at, short(label)),
      words(505, at, number(seen.scores[i]), end),
      rect(520, at - 12, width, 14, SAVED.accent),
      words(526 + width, at, number(seen.weights[i])),
      words(688, at, number(seen.distances[i]), end),
    ];
  };
  const below = 84 + 28 * labels.length;
  return [
    ...heads,
    ...labels.flatMap(line),
    words(370, below, TEXT.setting(point([x, y], 1), temperature)),
    words(370, below + 22, TEXT.output(point(seen.output))),
  ];
}
