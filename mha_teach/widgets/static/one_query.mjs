// OneQuery: how does one row of weights arise?
// Each part of the view is `{ root, draw(now, seen) }`: the state, and what follows.

import { captioned, number, numeral } from "./kit.mjs";
import { choice } from "./controls.mjs";
import { exports, frame, h, table, tables } from "./view.mjs";
import { TEXT, finding, look, point, rowsOf } from "./one_query_model.mjs";
import { ON_PAGE, SIDE, UNIT, drawing, plane, rows, steps } from "./one_query_draw.mjs";

const REACH = 3;
const AXES = ["x", "y"];
const MOVES = {
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  ArrowDown: [1, -1],
  ArrowUp: [1, 1],
};

/** The nearest tenth within the plane. */
const inPlane = (x) => Math.round(10 * Math.max(-REACH, Math.min(REACH, x))) / 10;

/**
 * The plane. ARIA knows no slider of two axes, so the query is a pair of sliders that
 * share its place and one tab stop: a key that moves along an axis also moves the focus
 * to its slider, and a screen reader reads where the query is now.
 */
function planePart(data, state, set) {
  const picture = h("div", { "aria-hidden": "true" });
  const sliders = AXES.map((_, axis) =>
    h("input", {
      type: "range",
      min: -REACH,
      max: REACH,
      step: 0.1,
      tabindex: -axis,
      "aria-label": TEXT.sliders[axis],
      oninput: () => go(axis, Number(sliders[axis].value)),
      onkeydown: (event) => press(event, axis),
    }),
  );
  const query = h("div", { class: "query" }, ...sliders);
  const root = h("div", { class: "plane" }, picture, query);

  function go(axis, value) {
    set({ [AXES[axis]]: inPlane(value) });
    sliders.forEach((slider, i) => (slider.tabIndex = i === axis ? 0 : -1));
    sliders[axis].focus();
  }

  function press(event, axis) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const page = { PageUp: [axis, 5], PageDown: [axis, -5] }[event.key];
    const move = page ?? MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    const tenths = event.shiftKey && !page ? 5 * move[1] : move[1];
    go(move[0], state()[AXES[move[0]]] + tenths / 10);
  }

  function follow(event) {
    const box = root.getBoundingClientRect();
    const unit = (UNIT / SIDE) * box.width;
    const x = inPlane((event.clientX - box.left - box.width / 2) / unit);
    const y = inPlane((box.top + box.height / 2 - event.clientY) / unit);
    const now = state();
    if (x !== now.x || y !== now.y) set({ x, y });
  }

  // A finger on the plane scrolls the page or taps; on the query it drags.
  let held = false;
  root.addEventListener("pointerdown", (event) => {
    if (event.button || (event.pointerType === "touch" && event.target !== query))
      return;
    event.preventDefault();
    held = true;
    root.setPointerCapture(event.pointerId);
    follow(event);
    sliders.find((slider) => slider.tabIndex === 0).focus({ preventScroll: true });
  });
  root.addEventListener("pointermove", (event) => held && follow(event));
  for (const end of ["pointerup", "pointercancel"]) {
    root.addEventListener(end, () => (held = false));
  }
  root.addEventListener("click", follow);

  return {
    root,
    draw({ x, y }, seen) {
      const parts = plane(data, [x, y], seen, ON_PAGE).join("");
      picture.innerHTML = `<svg viewBox="0 0 ${SIDE} ${SIDE}">${parts}</svg>`;
      query.style.left = `${50 + (100 * UNIT * x) / SIDE}%`;
      query.style.top = `${50 - (100 * UNIT * y) / SIDE}%`;
      [x, y].forEach((value, axis) => {
        sliders[axis].value = value;
        sliders[axis].ariaValueText = TEXT.at(number(x, 1), number(y, 1));
      });
    },
  };
}

function temperaturePart({ temperatures }, set) {
  const choose = (i) => set({ temperature: temperatures[i] });
  const { select, label } = choice(TEXT.temperature, temperatures, choose);
  const where = h("span");
  return {
    root: h("div", { class: "controls" }, label, where),
    draw({ x, y, temperature }) {
      where.textContent = TEXT.where(point([x, y], 1));
      select.value = temperatures.indexOf(temperature);
    },
  };
}

function filled(root, html) {
  return {
    root,
    draw(now, seen) {
      root.innerHTML = html(now, seen);
    },
  };
}

function csvOf(data, seen) {
  const lines = data.labels.map((label, i) => [
    label,
    ...[
      ...data.keys[i],
      ...data.values[i],
      seen.scores[i],
      seen.weights[i],
      seen.distances[i],
    ].map((x) => numeral(x, 4)),
  ]);
  return [TEXT.fields, ...lines];
}

function render({ model, el }) {
  const data = model.get("plane");
  const state = () => ({
    x: model.get("x"),
    y: model.get("y"),
    temperature: model.get("temperature"),
  });
  const seen = () => look(data, state());
  const sentence = () => finding(data, state());
  const saved = () => captioned(sentence(), drawing(data, state()));
  const tableOf = () => {
    const { x, y, temperature } = state();
    const { output } = seen();
    const caption = TEXT.caption(point([x, y], 1), temperature, point(output));
    return table(caption, TEXT.header, rowsOf(data, seen()));
  };

  function build(set, spoken) {
    const board = planePart(data, state, set);
    const temperature = temperaturePart(data, set);
    const lines = filled(h("table", { class: "rows" }), (_, seen) => rows(data, seen));
    const trail = filled(h("ol", { class: "trail" }), (now, seen) =>
      steps(data, now, seen),
    );
    const numbers = tables(TEXT.table, tableOf);
    const legend = TEXT.marks.map(([kind, sign, text]) =>
      h("li", {}, h("b", { class: kind, "aria-hidden": "true" }, sign), text),
    );
    const nodes = [
      h("p", { class: "title" }, data.title),
      h("p", { class: "intro" }, TEXT.intro),
      h(
        "div",
        { class: "pair" },
        h("div", {}, board.root, h("ul", { class: "marks" }, ...legend)),
        h("div", {}, temperature.root, ...spoken, lines.root, trail.root),
      ),
      exports("one-query", saved, () => csvOf(data, seen())),
      numbers.root,
    ];
    const parts = [board, temperature, lines, trail, numbers];
    const draw = () => {
      const [now, follows] = [state(), seen()];
      for (const part of parts) part.draw(now, follows);
    };
    return { nodes, draw, sentence };
  }

  return frame({ model, el }, data.title, ["x", "y", "temperature"], build);
}

export default { render };
