// AttentionMap, the part that needs no page: words, numbers, the picture to save.

import { bytes, css, number, ramp, rect, reshape, short, words } from "./kit.mjs";

export const TEXT = {
  where: ["", (s) => `Head ${s.head}: `, (s) => `Layer ${s.layer}, head ${s.head}: `],
  gives: (query, list) => `“${query}” gives ${list}.`,
  nothing: (query) => `“${query}” gives no weight to the tokens shown.`,
  to: (weight, key) => `${weight} to “${key}”`,
  and: (most, last) => `${most} and ${last}`,
  mean: (heads, key, weight) =>
    ` The mean over ${heads} heads gives “${key}” ${weight}.`,
  hidden: (left) =>
    ` Special tokens are hidden: the ${left} of its weight that is left is scaled up to 1.`,
  layer: "Layer",
  head: "Head",
  query: "Query token",
  hide: "Hide special tokens, scale the rest up to 1",
  strip: (self) =>
    self
      ? "Choose a token; the darker another, the more it gets"
      : "Queries: choose a token",
  keys: "Keys: the darker, the more weight",
  map: "Map: queries in rows, keys in columns",
  corner: "query ↓ key →",
  cell: (query, key, weight) => `query “${query}” to key “${key}”: weight ${weight}`,
  bars: (query) => `Where “${query}” looks`,
  barsNote: (heads) =>
    heads > 1 ? `Bar: this head. Line: the mean over ${heads} heads.` : "",
  rest: (n, weight) => `${n} more keys, together ${weight}`,
  all: "Every head; choose one",
  corners: "head",
  thumb: (layer, head) => `layer ${layer}, head ${head}`,
  layerLabel: (layer) => `layer ${layer}`,
  note:
    "A weight shows where a head looks. It does not show what the output owes to that " +
    "token; weights by themselves are not an explanation.",
  table: "Show as table",
  header: ["query", "key", "weight"],
};

export const BARS = 10;

/** Decodes the data once: weights as [layer][head][query][key], in bytes. */
export function open(map) {
  const [, heads, nQ, nK] = map.shape;
  return { ...map, heads, weights: reshape([...bytes(map.weights)], heads, nQ, nK) };
}

const plain = (labels, special) =>
  labels.map((_, i) => i).filter((i) => !special.includes(labels[i]));

/** Whether there are special tokens, and others beside them. */
export function canHide({ tokens, key_tokens, special }) {
  const left = [tokens, key_tokens].map((labels) => plain(labels, special).length);
  const some = left[0] < tokens.length || left[1] < key_tokens.length;
  return some && left[0] > 0 && left[1] > 0;
}

/** Which queries and which keys are shown. */
export function visible({ tokens, key_tokens, special }, { hide }) {
  return [tokens, key_tokens].map((labels) => plain(labels, hide ? special : []));
}

/** The weights of a head as shown, and what is left of each row. */
export function rowsOf(map, state, head = state.head, layer = state.layer) {
  const [queries, keys] = visible(map, state);
  const raw = queries.map((i) => keys.map((j) => map.weights[layer][head][i][j] / 255));
  const left = raw.map((row) => row.reduce((a, b) => a + b, 0));
  if (!state.hide) return { rows: raw, left };
  return { rows: raw.map((row, i) => row.map((w) => w / (left[i] || 1))), left };
}

/** The place of the selected query among those shown. */
export const placeOf = (map, state) =>
  Math.max(0, visible(map, state)[0].indexOf(state.query));

/** key index, weight and mean over the heads, the largest weight first. */
export function ranking(map, state) {
  const r = placeOf(map, state);
  const row = rowsOf(map, state).rows[r];
  const all = Array.from(
    { length: map.heads },
    (_, head) => rowsOf(map, state, head).rows[r],
  );
  return visible(map, state)[1]
    .map((key, j) => {
      const mean = all.reduce((sum, other) => sum + other[j], 0) / map.heads;
      return { key, weight: row[j], mean };
    })
    .sort((a, b) => b.weight - a.weight);
}

export function finding(map, state) {
  const r = placeOf(map, state);
  const query = map.tokens[visible(map, state)[0][r]];
  const ranked = ranking(map, state);
  const said = ranked
    .slice(0, 3)
    .filter(({ weight }) => weight >= 0.005)
    .map(({ key, weight }) => TEXT.to(number(weight), map.key_tokens[key]));
  const where = map.rank > 2 ? TEXT.where[map.rank - 2](state) : "";
  const last = said.pop();
  const list = said.length ? TEXT.and(said.join(", "), last) : last;
  const [{ key, mean }] = ranked;
  let text = where + (last ? TEXT.gives(query, list) : TEXT.nothing(query));
  if (last && map.heads > 1)
    text += TEXT.mean(map.heads, map.key_tokens[key], number(mean));
  if (state.hide) text += TEXT.hidden(number(rowsOf(map, state).left[r]));
  return text;
}

// ---- the drawing to save; attention_map.py draws the same one

const small = { size: 11, fill: "#59616c" };
const ACCENT = "#0b5cad";
const TOP = 96;

export function drawing(map, state) {
  const [queries, keys] = visible(map, state);
  const size = Math.min(26, Math.floor(420 / keys.length));
  const right = 120 + size * keys.length;
  const y = TOP + size * placeOf(map, state);
  const bars = ranking(map, state).slice(0, BARS);
  const parts = [
    ...labels(map, queries, keys, size),
    ...cells(rowsOf(map, state).rows, size),
    rect(110, y, right - 120, size, "none", ACCENT),
    ...bars.flatMap((bar, i) => barOf(map, bar, right + 20, TOP + 22 * i)),
  ];
  const tall = Math.max(size * queries.length, 22 * bars.length);
  return { width: 760, height: TOP + tall + 20, parts };
}

function labels(map, queries, keys, size) {
  const every = Math.ceil(12 / size);
  const parts = [];
  for (let r = 0; r < queries.length; r += every) {
    const y = TOP + size * r + Math.floor(size / 2) + 4;
    parts.push(
      words(104, y, short(map.tokens[queries[r]]), { ...small, anchor: "end" }),
    );
  }
  for (let c = 0; c < keys.length; c += every) {
    const x = 110 + size * c + Math.floor(size / 2) + 4;
    parts.push(`<g transform="translate(${x} ${TOP - 6}) rotate(-60)">`);
    parts.push(`${words(0, 0, short(map.key_tokens[keys[c]]), small)}</g>`);
  }
  parts.push(words(104, TOP - 6, TEXT.corner, { ...small, anchor: "end" }));
  return parts;
}

function cells(rows, size) {
  const paths = new Map();
  rows.forEach((row, r) =>
    row.forEach((weight, c) => {
      const fill = css(ramp(weight, false));
      paths.set(fill, `${paths.get(fill) ?? ""}M${c} ${r}h1v1h-1z`);
    }),
  );
  const drawn = [...paths].map(([fill, d]) => `<path fill="${fill}" d="${d}"/>`);
  const place = `translate(110 ${TOP}) scale(${size})`;
  return [`<g transform="${place}" shape-rendering="crispEdges">`, ...drawn, "</g>"];
}

function barOf(map, { key, weight }, x, y) {
  const width = Math.floor(100 * weight + 0.5);
  return [
    words(x + 72, y + 15, short(map.key_tokens[key]), { size: 12, anchor: "end" }),
    rect(x + 78, y + 4, width, 14, ACCENT),
    words(x + 84 + width, y + 15, number(weight), { size: 12 }),
  ];
}
