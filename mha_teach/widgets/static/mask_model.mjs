// Mask, the part that needs no page: words, numbers, code, the picture to save.

import { listed, number, rect, short, words } from "./kit.mjs";
import { attend, maskedSoftmax, average } from "./formulas.mjs";

const READER = "fine for a model that reads, a leak for one that writes";

export const TEXT = {
  intro:
    "Rows ask, columns are looked at. Paint the grid: Space or Enter on a cell, or " +
    "press and drag. A small head attends under your mask, twice: with the tokens as " +
    "they are, and with new tokens from the one you choose.",
  preset: "Mask",
  painted: "painted",
  change: "New tokens from",
  paintedSays: (some, all) => `Painted: ${some} of ${all} cells are allowed.`,
  first: (name) => `No output comes before ${name}, so nothing can leak.`,
  one: (name) => `1 output before ${name} moves: ${READER}.`,
  many: (n, name) => `${n} outputs before ${name} move: ${READER}.`,
  still: (from) => `Changing ${from} moves no earlier output`,
  noLeak: ": no leak.",
  elsewhere: (from) => `, but changing ${from} does.`,
  nobody: (names) =>
    names.length === 1
      ? `T${names[0].slice(1)} may look at nobody: its output is zero.`
      : `T${listed(names, TEXT.and).slice(1)} may look at nobody: their outputs are zero.`,
  token: (i, label) => `token ${i}${label === `t${i}` ? "" : ` (“${label}”)`}`,
  and: (most, last) => `${most} and ${last}`,
  andAfter: " and all after it",
  grid: "Who may look at whom",
  corner: "query\u00a0↓ key\u00a0→",
  cell: (query, key, says) => `query “${query}” to key “${key}”: ${says}`,
  open: (weight) => `may look, weight ${weight}`,
  shut: "may not look",
  leak: (weight) => `may look, weight ${weight}, and lets the change in`,
  output: (query, before, after) =>
    `Output of “${query}”: ${before} before, ${after} after.`,
  meter: "Leak meter ",
  meterSays: "how far each output moves",
  meterNote: "An output is two numbers; the bar is the larger change.",
  reading: [
    "A prime (′) marks a new token. A hollow bar may move, a filled one leaks.",
    "In the orange frame earlier tokens would look at new ones.",
  ],
  verdicts: {
    leaks: "leaks",
    stays: "stays",
    changed: "was changed",
    none: "sees nobody",
  },
  marks: { open: "", shut: "×", leak: "!" },
  legend: { open: "may look", shut: "may not", leak: "leaks" },
  code: "The same mask in Python",
  target: "Written for",
  targets: [
    "this book and F.scaled_dot_product_attention",
    "nn.MultiheadAttention",
    "an additive mask",
  ],
  nan: [
    "",
    "Where a token may look at nobody, nn.MultiheadAttention by default gives NaN.",
    "Where a token may look at nobody, a plain softmax gives NaN: every score is −∞.",
  ],
  copy: "Copy as Python",
  copied: "Copied.",
  selected: "The code is selected; copy it with your keyboard.",
  table: "Show as table",
  tableCaption: (name) => `New tokens from ${name} on`,
  header: ["token", "may look at", "before", "after", "largest change", "verdict"],
  none: "nobody",
  csv: ["query", "key", "may look", "weight before", "weight after"],
};

const MOVED = 1e-9;
const range = (n) => Array.from({ length: n }, (_, i) => i);

// ---- numbers

/** Weights and output of every query; `mask` is true where it may look. */
function maskedAttention({ q, k, v }, mask) {
  return q.map((query, i) => {
    const weights = maskedSoftmax(attend(query, k, v).scores, mask[i]);
    return { weights, output: average(weights, v) };
  });
}

/** What the head computes before and after, and the largest change of each output. */
export function look({ before, after }, { mask, changed }) {
  const mixed = {};
  for (const x of ["q", "k", "v"]) {
    mixed[x] = [...before[x].slice(0, changed), ...after[x].slice(changed)];
  }
  const [was, is] = [before, mixed].map((tokens) => maskedAttention(tokens, mask));
  const change = was.map(({ output }, i) =>
    Math.max(...output.map((x, c) => Math.abs(is[i].output[c] - x))),
  );
  return { was, is, change };
}

export function verdicts(attention, now) {
  const { change } = look(attention, now);
  return now.mask.map((row, i) => {
    if (!row.includes(true)) return TEXT.verdicts.none;
    if (i >= now.changed) return TEXT.verdicts.changed;
    return change[i] > MOVED ? TEXT.verdicts.leaks : TEXT.verdicts.stays;
  });
}

const leaks = (attention, now) =>
  verdicts(attention, now).filter((verdict) => verdict === TEXT.verdicts.leaks).length;

/** "open", "shut", or "leak" where an earlier token may look at a changed one. */
export function kindOf({ mask, changed }, r, c) {
  if (!mask[r][c]) return "shut";
  return r < changed && changed <= c ? "leak" : "open";
}

export function presetOf({ presets }, mask) {
  const wanted = JSON.stringify(mask);
  return presets.findIndex((preset) => JSON.stringify(preset.mask) === wanted);
}

// ---- words

export const name = ({ tokens }, i) => TEXT.token(i, tokens[i]);
const from = (attention, i) =>
  name(attention, i) + (i === attention.tokens.length - 1 ? "" : TEXT.andAfter);

export function finding(attention, now) {
  const preset = attention.presets[presetOf(attention, now.mask)];
  const cells = now.mask.flat();
  const some = cells.filter((allowed) => allowed).length;
  const empty = range(now.mask.length).filter((i) => !now.mask[i].includes(true));
  return [
    preset ? preset.says : TEXT.paintedSays(some, cells.length),
    leakFinding(attention, now),
    ...(empty.length ? [TEXT.nobody(empty.map((i) => name(attention, i)))] : []),
  ].join(" ");
}

function leakFinding(attention, now) {
  const [at, n] = [name(attention, now.changed), leaks(attention, now)];
  if (now.changed === 0) return TEXT.first(at);
  if (n) return n === 1 ? TEXT.one(at) : TEXT.many(n, at);
  const others = range(now.mask.length).slice(1);
  const other = others.find((changed) => leaks(attention, { ...now, changed }));
  const rest = other ? TEXT.elsewhere(from(attention, other)) : TEXT.noLeak;
  return TEXT.still(from(attention, now.changed)) + rest;
}

export const vector = (numbers) => `(${numbers.map((x) => number(x)).join(",\u00a0")})`;

export const seen = ({ tokens }, row) =>
  tokens.filter((_, j) => row[j]).join(", ") || TEXT.none;

/** The mask in Python, for one of `TEXT.targets`. */
export function code(attention, mask, target) {
  const n = mask.length;
  const rows = mask.map((row) => `    [${row.map(Number).join(", ")}],\n`).join("");
  const { imports, code: expression } = attention.presets[
    presetOf(attention, mask)
  ] ?? { imports: "import torch", code: `torch.tensor([\n${rows}]) == 1` };
  const needed = new Set([...(target === 2 ? ["import torch"] : []), imports]);
  const lines = [...needed, "", "# True = may attend", `mask = ${expression}`];
  const opposite = ["# the opposite: True = may not attend", "attn_mask = ~mask"];
  const added = [
    "# added to the scores: 0 = may attend, -inf = may not",
    `attn_mask = torch.zeros(${n}, ${n}).masked_fill(~mask, float("-inf"))`,
  ];
  return [...lines, ...[[], opposite, added][target]].join("\n");
}

// ---- the drawing to save; mask.py draws the same one

const [ACCENT, WARM, INK, MUTE] = ["#0b5cad", "#b3541e", "#1c2128", "#59616c"];
const [WASH, EDGE, LINE] = ["#f4f6f9", "#8791a0", "#d9dee5"];
const [SIZE, LEFT, UNIT] = [30, 110, 40];
const small = { size: 11, fill: MUTE };
const MARKS = {
  open: [ACCENT, ACCENT, TEXT.marks.open, INK],
  shut: [WASH, EDGE, TEXT.marks.shut, MUTE],
  leak: [WARM, WARM, TEXT.marks.leak, "#ffffff"],
};

export function drawing(attention, now) {
  const { tokens } = attention;
  const isShort = tokens.every((token) => Array.from(token).length <= 3);
  const [top, side] = [isShort ? 44 : 104, SIZE * tokens.length];
  const parts = [
    ...labels(tokens, now.changed, top, isShort),
    ...cells(now, top),
    ...meter(attention, now, top),
    ...meanings(top + side + 18),
  ];
  return { width: LEFT + side + 280, height: top + side + 94, parts };
}

function labels(tokens, changed, top, isShort) {
  const parts = [words(LEFT - 8, top - 8, TEXT.corner, { ...small, anchor: "end" })];
  tokens.forEach((token, i) => {
    const isNew = i >= changed;
    const style = { size: 12, fill: isNew ? WARM : INK };
    const [text, middle] = [short(token) + (isNew ? "′" : ""), SIZE * i + SIZE / 2];
    parts.push(words(LEFT - 8, top + middle + 4, text, { ...style, anchor: "end" }));
    if (isShort) {
      parts.push(words(LEFT + middle, top - 8, text, { ...style, anchor: "middle" }));
    } else {
      const place = `translate(${LEFT + middle + 4} ${top - 6}) rotate(-60)`;
      parts.push(`<g transform="${place}">`, `${words(0, 0, text, style)}</g>`);
    }
  });
  return parts;
}

function cell(x, y, kind) {
  const [fill, stroke, mark, ink] = MARKS[kind];
  const box = rect(x + 2, y + 2, SIZE - 4, SIZE - 4, fill, stroke);
  const style = { size: 14, fill: ink, anchor: "middle" };
  return mark ? [box, words(x + SIZE / 2, y + 20, mark, style)] : [box];
}

function cells(now, top) {
  const { mask, changed } = now;
  const parts = mask.flatMap((row, r) =>
    row.flatMap((_, c) => cell(LEFT + SIZE * c, top + SIZE * r, kindOf(now, r, c))),
  );
  if (changed) {
    const [tall, wide] = [changed, mask.length - changed];
    const x = LEFT + SIZE * changed;
    parts.push(rect(x, top, SIZE * wide, SIZE * tall, "none", WARM));
  }
  return parts;
}

function meter(attention, now, top) {
  const { change } = look(attention, now);
  const x = LEFT + SIZE * change.length + 24;
  const axis = rect(x - 1, top + 2, 1, SIZE * change.length - 4, LINE);
  const parts = [words(x, top - 8, TEXT.meterSays, small), axis];
  verdicts(attention, now).forEach((verdict, i) => {
    const [y, width] = [top + SIZE * i, Math.floor(UNIT * change[i] + 0.5)];
    const isLeak = verdict === TEXT.verdicts.leaks;
    const colours = isLeak ? [WARM, WARM] : [WASH, EDGE];
    if (width) parts.push(rect(x, y + 8, width, 14, ...colours));
    const text = `${number(change[i])} ${verdict}`;
    const style = { size: 12, fill: isLeak ? WARM : MUTE };
    parts.push(words(x + width + 6, y + 19, text, style));
  });
  return parts;
}

function meanings(y) {
  const marks = Object.entries(TEXT.legend).flatMap(([kind, text], i) => {
    const x = LEFT + 90 * i;
    const place = `translate(${x} ${y}) scale(0.6)`;
    return [
      `<g transform="${place}">`,
      ...cell(0, 0, kind),
      "</g>",
      words(x + 24, y + 14, text, small),
    ];
  });
  const lines = TEXT.reading.map((line, i) => words(8, y + 38 + 20 * i, line, small));
  return [...marks, ...lines];
}
