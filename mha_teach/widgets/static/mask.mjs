// Mask: who may look at whom, and does the future leak?
// Each part of the view is `{ root, draw(now, dark) }`; `now` is the state to show.

import { captioned, escape, number, numeral } from "./kit.mjs";
import { choice } from "./controls.mjs";
import { exports, frame, grid, h, table, tables } from "./view.mjs";
import {
  TEXT,
  code,
  drawing,
  finding,
  kindOf,
  look,
  name,
  presetOf,
  seen,
  vector,
  verdicts,
} from "./mask_model.mjs";

const MOST = 3.1; // no mask moves an output further
const heading = (...text) => h("p", { class: "heading" }, ...text);
const note = (text) => h("p", { class: "note" }, text);

function controlsPart(attention, set) {
  const { presets, tokens } = attention;
  const names = [...presets.map((preset) => preset.name), TEXT.painted];
  const mask = choice(TEXT.preset, names, (i) => set({ mask: presets[i].mask }));
  mask.select.lastChild.hidden = true; // what a painted mask is called, not a choice
  const labels = tokens.map((token, i) =>
    token === `t${i}` ? token : `${i} ${token}`,
  );
  const change = choice(TEXT.change, labels, (i) => set({ changed: i }));
  return {
    root: h("div", { class: "controls" }, mask.label, change.label),
    draw(now) {
      const at = presetOf(attention, now.mask);
      mask.select.value = at < 0 ? presets.length : at;
      change.select.value = now.changed;
    },
  };
}

/** Calls `paint(r, c, allowed)` for keys and taps on a cell, and along a drag. */
function painting(root, isOpen, paint) {
  let pointer;
  let stroke; // what a drag paints; undefined when there is none
  const place = (event) =>
    event.target.closest("[data-at]")?.dataset.at.split(",").map(Number);
  const toggle = (at) => at && paint(...at, !isOpen(...at));

  root.addEventListener("keydown", (event) => {
    if (![" ", "Enter"].includes(event.key)) return;
    event.preventDefault();
    if (!event.repeat) toggle(place(event));
  });
  root.addEventListener("pointerdown", (event) => {
    const at = place(event);
    pointer = event.pointerType;
    if (!at || pointer === "touch" || event.button !== 0) return;
    stroke = !isOpen(...at);
    toggle(at);
  });
  root.addEventListener("pointerover", (event) => {
    const at = place(event);
    if (!(event.buttons & 1)) stroke = undefined;
    if (at && stroke !== undefined) paint(...at, stroke);
  });
  root.addEventListener("click", (event) => {
    // A finger that moves scrolls the page, so only its tap paints. A screen reader
    // clicks without a pointer, which counts as no press at all.
    if (pointer === "touch" || event.detail === 0) toggle(place(event));
    stroke = undefined;
  });
}

/** The grid to paint. Moving the focus reads the weight of the cell. */
function boardPart(attention, state, set) {
  const { tokens } = attention;
  let at = [0, tokens.length - 1];
  const many = tokens.length > 8 ? " many" : "";
  const board = grid(TEXT.grid, `board${many}`, (r, c) => {
    at = [r, c];
    set({});
  });
  const isOpen = (r, c) => state().mask[r][c];
  painting(board.root, isOpen, (r, c, allowed) => {
    const mask = state().mask.map((row) => [...row]);
    mask[r][c] = allowed;
    set({ mask });
  });
  const readout = note("");
  return {
    root: board.root,
    readout,
    draw(now) {
      const { was, is } = look(attention, now);
      const says = (r, c) => {
        const kind = kindOf(now, r, c);
        const text =
          kind === "shut" ? TEXT.shut : TEXT[kind](number(was[r].weights[c]));
        return TEXT.cell(tokens[r], tokens[c], text);
      };
      board.draw({
        rows: tokens,
        columns: tokens,
        corner: TEXT.corner,
        chosen: at,
        paint(cell, r, c) {
          const kind = kindOf(now, r, c);
          const zone = r < now.changed && c >= now.changed ? " zone" : "";
          const edge =
            (c === now.changed ? " left" : "") + (r === now.changed - 1 ? " foot" : "");
          cell.className = kind + (zone && zone + edge);
          cell.textContent = TEXT.marks[kind];
          cell.ariaLabel = says(r, c);
        },
      });
      const [corner, ...columns] = board.root.querySelectorAll("[role=columnheader]");
      const rows = board.root.querySelectorAll("[role=rowheader]");
      for (const labels of [columns, rows]) {
        labels.forEach((label, i) => label.classList.toggle("new", i >= now.changed));
      }
      const [r, c] = at;
      const outputs = [was, is].map((tokens) => vector(tokens[r].output));
      readout.textContent = `${says(r, c)}. ${TEXT.output(tokens[r], ...outputs)}`;
    },
  };
}

function meterPart(attention) {
  const bars = h("ol", { class: "meter" });
  return {
    root: h("div", {}, heading(TEXT.meter, h("span", {}, TEXT.meterSays)), bars),
    draw(now) {
      const { change } = look(attention, now);
      const said = verdicts(attention, now);
      const line = (token, i) =>
        `<li class="${said[i] === TEXT.verdicts.leaks ? "leaks" : ""}">` +
        `<span class="name${i >= now.changed ? " new" : ""}">${escape(token)}</span> ` +
        `<i style="--share:${(change[i] / MOST).toFixed(3)}"></i>` +
        `<b>${number(change[i])} ${said[i]}</b></li>`;
      bars.innerHTML = attention.tokens.map(line).join("");
    },
  };
}

function legendOf() {
  const item = ([kind, text]) =>
    h(
      "span",
      {},
      h("i", { class: kind, "aria-hidden": "true" }, TEXT.marks[kind]),
      text,
    );
  return h("p", { class: "legend" }, ...Object.entries(TEXT.legend).map(item));
}

/** The mask as code. Where the clipboard is refused, the code is selected instead. */
function codePart(attention, set) {
  let target = 0;
  const attributes = { readonly: "", wrap: "off", spellcheck: "false" };
  const text = h("textarea", { ...attributes, "aria-label": TEXT.code });
  const wanted = choice(TEXT.target, TEXT.targets, (i) => {
    target = i;
    set({});
  });
  const said = h("span", { role: "status" });
  const warning = note("");
  const onclick = async () => {
    try {
      await navigator.clipboard.writeText(text.value);
      said.textContent = TEXT.copied;
    } catch {
      text.select();
      said.textContent = TEXT.selected;
    }
  };
  const copy = h("button", { type: "button", onclick }, TEXT.copy);
  const row = h("div", { class: "controls" }, wanted.label, copy, said);
  return {
    root: h("div", { class: "code" }, heading(TEXT.code), row, text, warning),
    draw(now) {
      const written = code(attention, now.mask, target);
      if (written !== text.value) said.textContent = "";
      text.value = written;
      text.rows = written.split("\n").length;
      const isEmpty = now.mask.some((row) => !row.includes(true));
      warning.textContent = isEmpty ? TEXT.nan[target] : "";
    },
  };
}

function tableOf(attention, now) {
  const { was, is, change } = look(attention, now);
  const said = verdicts(attention, now);
  const rows = attention.tokens.map((token, i) => [
    token,
    seen(attention, now.mask[i]),
    vector(was[i].output),
    vector(is[i].output),
    number(change[i]),
    said[i],
  ]);
  return table(TEXT.tableCaption(name(attention, now.changed)), TEXT.header, rows);
}

function csvOf(attention, now) {
  const { was, is } = look(attention, now);
  const { tokens } = attention;
  const rows = now.mask.flatMap((row, r) =>
    row.map((allowed, c) => {
      const weights = [was, is].map((one) => numeral(one[r].weights[c], 4));
      return [tokens[r], tokens[c], Number(allowed), ...weights];
    }),
  );
  return [TEXT.csv, ...rows];
}

function render({ model, el }) {
  const attention = model.get("attention");
  const state = () => ({ mask: model.get("mask"), changed: model.get("changed") });
  const sentence = () => finding(attention, state());
  const saved = () => captioned(sentence(), drawing(attention, state()));

  function build(set, spoken) {
    const controls = controlsPart(attention, set);
    const board = boardPart(attention, state, set);
    const meter = meterPart(attention);
    const python = codePart(attention, set);
    const numbers = tables(TEXT.table, () => tableOf(attention, state()));
    const parts = [controls, board, meter, python, numbers];
    const nodes = [
      h("p", { class: "title" }, attention.title),
      h("p", { class: "intro" }, TEXT.intro),
      controls.root,
      ...spoken,
      h("div", { class: "pair" }, board.root, meter.root),
      legendOf(),
      board.readout,
      h("p", { class: "note last" }, [...TEXT.reading, TEXT.meterNote].join(" ")),
      python.root,
      exports("mask", saved, () => csvOf(attention, state())),
      numbers.root,
    ];
    const draw = (dark) => parts.forEach((part) => part.draw(state(), dark));
    return { nodes, draw, sentence };
  }

  return frame({ model, el }, attention.title, ["mask", "changed"], build);
}

export default { render };
