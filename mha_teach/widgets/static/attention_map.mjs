// AttentionMap: what does this head look at?
// Each part of the view is `{ root, draw(now, dark) }`; `now` is the state to show.

import { captioned, escape, number, numeral, shadeOf } from "./kit.mjs";
import { choice } from "./controls.mjs";
import { exports, frame, grid, h, legend, shade, table, tables } from "./view.mjs";
import {
  BARS,
  TEXT,
  canHide,
  drawing,
  finding,
  open,
  placeOf,
  ranking,
  rowsOf,
  visible,
} from "./attention_map_model.mjs";

const range = (n) => Array.from({ length: n }, (_, i) => i);
const heading = (text) => h("p", { class: "heading" }, text);
const note = (text) => h("p", { class: "note" }, text);

/** The tokens shown, their weights, and the place of the selected query. */
function shown(map, now) {
  const [queries, keys] = visible(map, now);
  return {
    queries: queries.map((i) => map.tokens[i]),
    keys: keys.map((j) => map.key_tokens[j]),
    rows: rowsOf(map, now).rows,
    place: placeOf(map, now),
    indexOf: (place) => queries[place],
  };
}

function controlsPart(map, set) {
  const [layers, heads] = map.shape;
  const layer = choice(TEXT.layer, range(layers), (l) => set({ layer: l }));
  const head = choice(TEXT.head, range(heads), (i) => set({ head: i }));
  const token = choice(TEXT.query, map.tokens, (i) => set({ selected_query: i }));
  const onchange = () => set({ hide_special: hide.checked });
  const hide = h("input", { type: "checkbox", onchange });
  const labels = [
    ...(map.rank > 3 ? [layer.label] : []),
    ...(map.rank > 2 ? [head.label] : []),
    token.label,
    ...(canHide(map) ? [h("label", {}, hide, TEXT.hide)] : []),
  ];
  return {
    root: h("div", { class: "controls" }, ...labels),
    draw(now) {
      const { indexOf, place } = shown(map, now);
      layer.select.value = now.layer;
      head.select.value = now.head;
      token.select.value = indexOf(place);
      hide.checked = now.hide;
    },
  };
}

/** The sentence: choose a query; the keys are shaded, the same tokens if they are. */
function sentencePart(map, state, set) {
  const same = JSON.stringify(map.tokens) === JSON.stringify(map.key_tokens);
  const choose = (_, c) => set({ selected_query: shown(map, state()).indexOf(c) });
  const strip = grid(TEXT.strip(same), "strip", choose);
  const keyStrip = h("p", { class: "keys" });
  return {
    root: h("div", {}, strip.root, ...(same ? [] : [note(TEXT.keys), keyStrip])),
    draw(now, dark) {
      const { queries, keys, rows, place } = shown(map, now);
      strip.draw({
        rows: [""],
        columns: queries,
        chosen: [0, place],
        paint(cell, _, c) {
          cell.textContent = queries[c];
          shade(cell, same ? rows[place][c] : 0, dark);
        },
      });
      const spans = keys.map((key) => h("span", {}, key));
      spans.forEach((span, c) => shade(span, rows[place][c], dark));
      keyStrip.replaceChildren(...spans);
    },
  };
}

/** The large map. Moving along a row moves the focus and reads the weight there. */
function mapPart(map, state, set) {
  let column = shown(map, state()).keys.indexOf(
    map.key_tokens[ranking(map, state())[0].key],
  );
  const big = grid(TEXT.map, "map", (r, c) => {
    column = c;
    set({ selected_query: shown(map, state()).indexOf(r) });
  });
  const readout = note("");
  const scale = legend("0", "1");
  return {
    root: h("div", {}, heading(TEXT.map), big.root, readout, scale.root),
    draw(now, dark) {
      const { queries, keys, rows, place } = shown(map, now);
      const said = (r, c) => TEXT.cell(queries[r], keys[c], number(rows[r][c]));
      const every = Math.ceil(Math.max(keys.length, queries.length) / 24);
      const thin = (labels) => labels.map((text, i) => (i % every ? "" : text));
      column = Math.min(column, keys.length - 1);
      readout.textContent = said(place, column);
      scale.draw(dark);
      big.root.classList.toggle("many", every > 1);
      big.draw({
        rows: thin(queries),
        columns: thin(keys),
        corner: TEXT.corner,
        chosen: [place, column],
        stamp: `${now.layer} ${now.head} ${now.hide} ${dark}`,
        paint(cell, r, c) {
          cell.ariaLabel = said(r, c);
          shade(cell, rows[r][c], dark);
        },
      });
    },
  };
}

/** The row of the selected query, sorted. */
function barsPart(map) {
  const title = heading("");
  const bars = h("ol", { class: "bars" });
  const mean = (x) => (map.heads > 1 ? `<u style="left:${x}"></u>` : "");
  return {
    root: h("div", {}, title, bars, note(TEXT.barsNote(map.heads))),
    draw(now) {
      const { queries, place } = shown(map, now);
      const ranked = ranking(map, now);
      const most = Math.max(ranked[0].weight, ...ranked.map((key) => key.mean)) || 1;
      const share = (x) => `${(100 * x) / most}%`;
      const line = (bar) =>
        `<li><span>${escape(map.key_tokens[bar.key])}</span><span class="track">` +
        `<i style="width:${share(bar.weight)}"></i>${mean(share(bar.mean))}</span>` +
        `<b>${number(bar.weight)}</b></li>`;
      const rest = ranked.slice(BARS);
      const sum = rest.reduce((total, bar) => total + bar.weight, 0);
      const more = rest.length
        ? [`<li>${TEXT.rest(rest.length, number(sum))}</li>`]
        : [];
      title.textContent = TEXT.bars(queries[place]);
      bars.innerHTML = [...ranked.slice(0, BARS).map(line), ...more].join("");
    },
  };
}

/** Paints a map into a canvas, one pixel a weight. */
function thumbnail(canvas, rows, dark) {
  canvas.width = rows[0].length;
  canvas.height = rows.length;
  const image = new ImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer); // alpha, blue, green, red
  rows.flat().forEach((weight, i) => {
    const [r, g, b] = shadeOf(weight, dark);
    pixels[i] = (255 << 24) | (b << 16) | (g << 8) | r;
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** Every head of every layer, in small. */
function overviewPart(map, set) {
  const [layers, heads] = map.shape;
  const all = grid(TEXT.all, "all", (l, i) => set({ layer: l, head: i }));
  return {
    root: h("div", {}, heading(TEXT.all), all.root),
    draw: (now, dark) =>
      all.draw({
        rows: range(layers).map(map.rank > 3 ? TEXT.layerLabel : () => ""),
        columns: range(heads),
        corner: TEXT.corners,
        chosen: [now.layer, now.head],
        stamp: `${now.hide} ${dark}`,
        paint(cell, l, i) {
          cell.ariaLabel = TEXT.thumb(l, i);
          if (!cell.firstChild) cell.append(h("canvas"));
          thumbnail(cell.firstChild, rowsOf(map, now, i, l).rows, dark);
        },
      }),
  };
}

function tableOf(map, now) {
  const { queries, keys, rows } = shown(map, now);
  const lines = rows.map((row, r) => [queries[r], ...row.map((x) => number(x))]);
  return table(TEXT.map, [TEXT.header[0], ...keys], lines);
}

function csvOf(map, now) {
  const { queries, keys, rows } = shown(map, now);
  const lines = rows.flatMap((row, r) =>
    row.map((x, c) => [queries[r], keys[c], numeral(x, 4)]),
  );
  return [TEXT.header, ...lines];
}

function render({ model, el }) {
  const map = open(model.get("map"));
  const state = () => ({
    layer: model.get("layer"),
    head: model.get("head"),
    query: model.get("selected_query"),
    hide: model.get("hide_special"),
  });
  const sentence = () => finding(map, state());
  const saved = () => captioned(sentence(), drawing(map, state()));

  function build(set, spoken) {
    const controls = controlsPart(map, set);
    const strip = sentencePart(map, state, set);
    const big = mapPart(map, state, set);
    const bars = barsPart(map);
    const overview = map.rank > 2 ? [overviewPart(map, set)] : [];
    const numbers = tables(TEXT.table, () => tableOf(map, state()));
    const parts = [controls, strip, big, bars, ...overview, numbers];
    const wide = map.key_tokens.length > 24 ? " wide" : "";
    const nodes = [
      h("p", { class: "title" }, map.title),
      controls.root,
      ...spoken,
      strip.root,
      h("div", { class: `pair${wide}` }, big.root, bars.root),
      ...overview.map((part) => part.root),
      h("p", { class: "note last" }, TEXT.note),
      exports("attention", saved, () => csvOf(map, state())),
      numbers.root,
    ];
    const draw = (dark) => parts.forEach((part) => part.draw(state(), dark));
    return { nodes, draw, sentence };
  }

  const choices = ["layer", "head", "selected_query", "hide_special"];
  return frame({ model, el }, map.title, choices, build);
}

export default { render };
