// Heads, the drawings: each function returns the text of some HTML or SVG.

import {
  count,
  css,
  escape,
  inkOn,
  number,
  percent,
  ramp,
  rect,
  words,
} from "./kit.mjs";
import { TEXT, attention, axes, cellOf, costs, share, steps } from "./heads_model.mjs";

// ---- the pipeline: one column is one feature, one row is one token

const FEATURE = 0.86;
const TOKEN = 2;

const box = (x, y, width, height, chosen) =>
  `<rect class="${chosen ? "chosen" : ""}" x="${x}" y="${y}" width="${width}" height="${height}"/>`;

/** A matrix (token, features); the block of the chosen head stands out. */
function flat(y, features, height, numHeads, chosen) {
  const block = (features * FEATURE) / numHeads;
  const blocks = Array.from({ length: numHeads }, (_, i) =>
    box(i * block, y, block, height, i === chosen),
  );
  return blocks.join("");
}

/** One sheet a head, one behind the other; the chosen one in front. */
function stack(x, step, width, height, numHeads, chosen) {
  const behind = [...Array(numHeads).keys()].filter((i) => i !== chosen).reverse();
  return [...behind, chosen]
    .map((i) => box(x + i * step, 14 - 2 * i, width, height, i === chosen))
    .join("");
}

function sketch(step, task, h, w, chosen, key) {
  const n = (task.positions + 1) * TOKEN;
  const [k, v] = [w * FEATURE, task.d_v * FEATURE];
  const followed = () =>
    stack(0, 9, n, n, h, chosen) +
    `<rect class="key" x="${9 * chosen + TOKEN * key}" y="${12 + n - 2 * chosen}" width="2" height="2"/>`;
  const art = {
    x: () => flat(8, task.d_model, n, 1),
    "q, k, v": () =>
      flat(0, h * w, 12, h, chosen) +
      flat(18, h * w, 12, h, chosen) +
      flat(36, h * task.d_v, 12, h, chosen),
    split: () =>
      stack(0, 3, k, n, h, chosen) +
      stack(42, 3, k, n, h, chosen) +
      stack(84, 3, v, n, h, chosen),
    scores: followed,
    weights: followed,
    head_outputs: () => stack(0, 9, v, n, h, chosen),
    merge: () => flat(8, h * task.d_v, n, h, chosen),
    output: () => flat(8, task.d_model, n, 1),
  };
  return `<svg viewBox="-1 -1 124 52" aria-hidden="true">${art[step]()}</svg>`;
}

function shapeOf([label, sizes, names]) {
  const axis = names.split(", ");
  const size = (s, i) => (/head|d_k|h·/.test(axis[i]) ? `<b>${s}</b>` : s);
  return (
    `<span class="shape">${label} (${sizes.map(size).join(", ")})</span>` +
    `<span class="axes">(${names})</span>`
  );
}

export function pipeline(task, h, w, head, key) {
  const item = ([name, code, tensors]) =>
    `<li><code class="name">${name}</code><code class="axes">${code}</code>` +
    `${sketch(name, task, h, w, head, key)}${tensors.map(shapeOf).join("")}</li>`;
  return steps(task, h, w).map(item).join("");
}

// ---- follow one number

/** Columns of numbers, coloured by sign and size. */
function ledger(names, lines) {
  const most = Math.max(...lines.flat().map(Math.abs)) || 1;
  const entry = (x) => {
    const strength = Math.round((40 * Math.abs(x)) / most);
    return `<span class="${x < 0 ? "minus" : "plus"}" style="--s:${strength}%">${number(x)}</span>`;
  };
  const column = (_, i) => `<li>${lines.map((line) => entry(line[i])).join("")}</li>`;
  return (
    `<div class="ledger"><p>${names.join("<br>")}</p>` +
    `<ul>${lines[0].map(column).join("")}</ul></div>`
  );
}

export function trail({ q, k, v, products, scores, weights, output }, key) {
  const top = Math.max(...scores);
  const powers = scores.map((s) => Math.exp(s - top));
  const total = powers.reduce((a, b) => a + b, 0);
  const [score, weight] = [number(scores[key]), number(weights[key])];
  const terms = q.map((x, i) => x * k[key][i]);
  const part = v[key].map((x) => weights[key] * x);
  const sum = [number(top), number(powers[key], 3), number(total, 3)];
  const steps = [
    TEXT.product(number(products[key])) + ledger(TEXT.terms, [q, k[key], terms]),
    TEXT.score(number(Math.sqrt(q.length)), score),
    TEXT.weight(scores.length, score, ...sum, weight),
    TEXT.values + ledger(TEXT.parts, [v[key], part, output]),
  ];
  return steps.map((step) => `<li>${step}</li>`).join("");
}

// ---- answers

export function distribution({ task, example }, probabilities, slot) {
  const best = probabilities.indexOf(Math.max(...probabilities));
  const right = example.answer[slot];
  const said = [
    escape(task.symbols[best]),
    number(probabilities[best]),
    best === right,
  ];
  const bar = (p, i) =>
    `<li class="${i === right ? "right" : ""}"><i style="height:${(100 * p).toFixed(1)}%"></i>` +
    `${escape(task.symbols[i])}</li>`;
  return (
    `<div><p>${TEXT.answer("ab"[slot], example.pointers[slot], ...said)}</p>` +
    `<ol aria-hidden="true">${probabilities.map(bar).join("")}</ol></div>`
  );
}

// ---- the drawing to save; heads.py draws the same one for the static figure

const label = { size: 12, fill: "#59616c" };
const centred = { ...label, anchor: "middle" };

export function drawing(data, h, w) {
  const parts = [
    ...landscape(data, h, w),
    ...costColumn(data.task, h, w),
    ...strips(data, h, w),
  ];
  return { width: 700, height: 246 + 28 * h, parts };
}

function landscape(data, h, w) {
  const { numbers, widths } = axes(data);
  const parts = [words(20, 30, "heads", label), words(80, 30, "width d_k", label)];
  widths.forEach((width, c) => parts.push(words(180 + 72 * c, 30, width, centred)));
  numbers.forEach((n, r) => {
    const y = 38 + 40 * r;
    parts.push(words(40, y + 23, n, label));
    widths.forEach((width, c) => {
      const x = 146 + 72 * c;
      const here = n === h && width === w;
      const colours = here ? ["#e3eefa", "#0b5cad"] : ["#f4f5f7", "none"];
      parts.push(rect(x, y, 68, 36, ...colours));
      parts.push(words(x + 34, y + 17, share(data, n, width), { anchor: "middle" }));
      for (const a of cellOf(data, n, width).accuracy) {
        const cx = x + 6 + Math.floor(56 * a + 0.5);
        parts.push(`<circle cx="${cx}" cy="${y + 27}" r="2.5" fill="#0b5cad"/>`);
      }
    });
  });
  return parts;
}

function costColumn(task, h, w) {
  return costs(task, h, w).flatMap((value, i) => [
    words(470, 54 + 44 * i, TEXT.costs[i], label),
    words(470, 74 + 44 * i, count(value), { size: 17 }),
  ]);
}

function strips(data, h, w) {
  const { tokens, pointers } = data.example;
  const letters = [...tokens.map((token) => data.task.symbols[token]), "?"];
  const parts = [words(20, 222, `${TEXT.maps}, one line a head`, label)];
  attention(data, h, w).forEach(({ weights }, i) => {
    const y = 232 + 28 * i;
    parts.push(words(20, y + 17, `head ${i}`, label));
    weights.forEach((weight, at) => {
      const [x, rgb, mark] = [
        80 + 35 * at,
        ramp(weight, false),
        "ab"[pointers.indexOf(at)],
      ];
      const text = mark ? `${letters[at]} ${mark}` : letters[at];
      parts.push(rect(x, y, 34, 25, css(rgb), mark ? "#b3541e" : "none"));
      parts.push(words(x + 17, y + 17, text, { ...centred, fill: inkOn(rgb) }));
    });
  });
  return parts;
}
