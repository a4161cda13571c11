// Heads: what do the number of heads and their width change, together?
// Each part of the view is `{ root, draw(now, dark) }`; `now` is the state to show.

import { captioned, count, halves, number, numeral, reshape } from "./kit.mjs";
import {
  exports,
  fold,
  frame,
  grid,
  h,
  legend,
  shade,
  table,
  tables,
} from "./view.mjs";
import {
  MOST,
  TEXT,
  attention,
  axes,
  cellOf,
  costs,
  explain,
  finding,
  share,
  wrongSize,
} from "./heads_model.mjs";
import { distribution, drawing, pipeline, trail } from "./heads_draw.mjs";

const heading = (text) => h("p", { class: "heading" }, text);
const note = (text) => h("p", { class: "note" }, text);

/** The question asked of every model, as text. */
function questionOf({ task, example }) {
  const letter = (at) => (at < task.positions ? task.symbols[example.tokens[at]] : "?");
  return {
    positions: [...example.tokens.keys(), task.positions],
    letter,
    name: (at) => (at < task.positions ? letter(at) : TEXT.asking),
    mark: (at) => "ab"[example.pointers.indexOf(at)] ?? "",
  };
}

/** Accuracy of every setting; choosing one changes all the rest. */
function landscapePart(data, set) {
  const { numbers, widths } = axes(data);
  const choose = (r, c) => set({ num_heads: numbers[r], d_k: widths[c] });
  const { root, draw } = grid(TEXT.landscape, "landscape", choose);
  const paint = (cell, r, c) => {
    const setting = [numbers[r], widths[c]];
    const dot = (a) => `<i style="left:${100 * a}%"></i>`;
    const dots = cellOf(data, ...setting)
      .accuracy.map(dot)
      .join("");
    cell.ariaLabel = TEXT.setting(...setting, share(data, ...setting));
    cell.innerHTML = `<b>${share(data, ...setting)}</b><span class="dots">${dots}</span>`;
  };
  return {
    root,
    draw({ n, w }) {
      const chosen = [numbers.indexOf(n), widths.indexOf(w)];
      const labels = { rows: numbers, columns: widths, corner: TEXT.corner };
      draw({ ...labels, chosen, stamp: "once", paint });
    },
  };
}

function costsPart(data) {
  const root = h("dl", { class: "costs" });
  const { numbers, widths } = axes(data);
  const most = costs(data.task, numbers.at(-1), widths.at(-1));
  const line = (x, i) =>
    `<dt>${TEXT.costs[i]}</dt><dd>${count(x)}` +
    `<span><i style="width:${(100 * x) / most[i]}%"></i></span></dd>`;
  return {
    root,
    draw({ n, w }) {
      root.innerHTML = costs(data.task, n, w).map(line).join("");
    },
  };
}

function pipelinePart(data) {
  const root = h("ol", { class: "pipeline" });
  return {
    root,
    draw({ n, w, head, key }) {
      root.innerHTML = pipeline(data.task, n, w, head, key);
    },
  };
}

/** The weights of the last token, a line a head. */
function stripsPart(data, set) {
  const { positions, letter, name, mark } = questionOf(data);
  const choose = (head, key) => set({ selected_head: head, selected_key: key });
  const strips = grid(TEXT.maps, "strips", choose);
  const said = note("");
  const scale = legend("0", "1");
  return {
    root: h("div", {}, strips.root, h("div", { class: "under" }, said, scale.root)),
    draw({ n, w, head, key, heads }, dark) {
      said.textContent = TEXT.mapsNote(cellOf(data, n, w).shown_seed);
      scale.draw(dark);
      strips.draw({
        rows: heads.map((_, i) => `head ${i}`),
        columns: positions,
        chosen: [head, key],
        stamp: `${n} ${w} ${dark}`,
        paint(cell, i, at) {
          const weight = heads[i].weights[at];
          cell.ariaLabel = TEXT.cell(i, at, name(at), mark(at), number(weight));
          cell.className = mark(at) && "asked";
          cell.dataset.mark = mark(at);
          cell.textContent = letter(at);
          shade(cell, weight, dark);
        },
      });
    },
  };
}

function answersPart(data) {
  const root = h("div", { class: "answers" });
  return {
    root,
    draw({ n, w }) {
      const flat = halves(cellOf(data, n, w).probabilities);
      const slots = reshape(flat, data.task.symbols.length);
      root.innerHTML = slots.map((p, slot) => distribution(data, p, slot)).join("");
    },
  };
}

function trailPart(data) {
  const { letter } = questionOf(data);
  const steps = h("ol", { class: "trail" });
  const root = fold("", true, steps);
  return {
    root,
    draw({ head, key, heads }) {
      root.firstChild.textContent = TEXT.follow(head, key, letter(key));
      steps.innerHTML = trail(heads[head], key);
    },
  };
}

/** d_model and h of any size: what fits, and what to do where it does not. */
function anyNumbers() {
  const said = h("p", { role: "status" });
  const bars = h("div", { class: "widths", "aria-hidden": "true" });
  const inputs = [512, 12, ""].map((value) =>
    h("input", { type: "number", min: 1, max: MOST, value, oninput: update }),
  );
  inputs[2].placeholder = TEXT.convention;
  const labels = inputs.map((input, i) => h("label", {}, `${TEXT.fields[i]} `, input));

  function update() {
    const typed = inputs.map((input) => input.value);
    const wrong = wrongSize(typed);
    if (wrong) {
      said.textContent = wrong;
      bars.replaceChildren();
      return;
    }
    const [d, n, dK] = typed.map(Number);
    if (!(d && n)) return;
    const { width, text } = explain(d, n, dK);
    said.innerHTML = text.replaceAll("W^O", "W<sup>O</sup>");
    const bar = (name, size, cuts) =>
      `<p><span>${name}</span><i style="width:${(100 * size) / Math.max(d, n * width)}%;` +
      `--n:${cuts}"></i><span>${count(size)}</span></p>`;
    bars.innerHTML = bar("x", d, 1) + bar("heads", n * width, Math.min(n, 64));
  }

  update();
  return fold(TEXT.any, true, h("p", { class: "fields" }, ...labels), bars, said);
}

/** The numbers behind the maps, a row a head and position; `write` makes them text. */
function rowsOf(data, { heads }, write) {
  const { positions, letter } = questionOf(data);
  return heads.flatMap(({ products, scores, weights }, i) =>
    positions.map((at) => {
      const numbers = [products, scores, weights].map((x) => write(x[at], 4));
      return [i, at, letter(at), ...numbers];
    }),
  );
}

function tablesOf(data, now) {
  const { numbers, widths } = axes(data);
  const setting = (n, w) => [
    n,
    w,
    ...costs(data.task, n, w).map(count),
    share(data, n, w),
  ];
  const settings = numbers.flatMap((n) => widths.map((w) => setting(n, w)));
  return (
    table(TEXT.settings, ["heads", "d_k", ...TEXT.costs, "both right"], settings) +
    table(TEXT.weights, TEXT.header, rowsOf(data, now, number))
  );
}

function render({ model, el }) {
  const data = model.get("grid");
  const cache = {};
  const state = () => {
    const [n, w] = [model.get("num_heads"), model.get("d_k")];
    const heads = (cache[`${n},${w}`] ??= attention(data, n, w));
    const head = Math.min(model.get("selected_head"), n - 1);
    return { n, w, heads, head, key: model.get("selected_key") };
  };
  const sentence = ({ n, w } = state()) => finding(data, n, w);
  const saved = ({ n, w } = state()) => captioned(sentence(), drawing(data, n, w));

  function build(set, spoken) {
    const keepHead = (choices) => {
      const head = Math.min(state().head, choices.num_heads - 1);
      set({ ...choices, selected_head: head });
    };
    const landscape = landscapePart(data, keepHead);
    const cost = costsPart(data);
    const flow = pipelinePart(data);
    const strips = stripsPart(data, set);
    const answers = answersPart(data);
    const trail = trailPart(data);
    const numbers = tables(TEXT.table, () => tablesOf(data, state()));
    const parts = [landscape, cost, flow, strips, answers, trail, numbers];
    const nodes = [
      h("p", { class: "title" }, TEXT.title),
      h("p", { class: "intro" }, TEXT.intro(data.task)),
      h(
        "div",
        { class: "pair" },
        h("div", {}, landscape.root, note(TEXT.landscapeNote)),
        h("div", {}, ...spoken, cost.root),
      ),
      heading(TEXT.pipeline),
      flow.root,
      note(TEXT.pipelineNote),
      heading(TEXT.maps),
      strips.root,
      heading(TEXT.answers),
      answers.root,
      trail.root,
      anyNumbers(),
      exports("heads", saved, () => [TEXT.header, ...rowsOf(data, state(), numeral)]),
      numbers.root,
    ];
    const draw = (dark) => parts.forEach((part) => part.draw(state(), dark));
    return { nodes, draw, sentence };
  }

  const choices = ["num_heads", "d_k", "selected_head", "selected_key"];
  return frame({ model, el }, TEXT.title, choices, build);
}

export default { render };
