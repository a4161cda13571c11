// What every explorer needs on a page: elements, a keyboard grid, export, the frame.

import { css, escape, inkOn, luminance, scaleStops, shadeOf } from "./kit.mjs";

// ---- elements

/** h("p", { class: "note" }, "text", child) */
export function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

export function fold(title, open, ...children) {
  const attributes = open ? { open: "" } : {};
  return h("details", attributes, h("summary", {}, title), ...children);
}

/** A folded part whose numbers are written while it is open. */
export function tables(title, html) {
  const body = h("div", { class: "tables" });
  const root = fold(title, false, body);
  const draw = () => {
    if (root.open) body.innerHTML = html();
  };
  root.addEventListener("toggle", draw);
  return { root, draw };
}

export function table(caption, header, rows) {
  const cell = (tag, scope) => (x) => `<${tag}${scope}>${escape(x)}</${tag}>`;
  const line = ([first, ...rest]) =>
    `<tr>${cell("th", ' scope="row"')(first)}${rest.map(cell("td", "")).join("")}</tr>`;
  const head = header.map(cell("th", ' scope="col"')).join("");
  return (
    `<table><caption>${escape(caption)}</caption><thead><tr>${head}</tr></thead>` +
    `<tbody>${rows.map(line).join("")}</tbody></table>`
  );
}

/**
 * An ARIA grid with one tab stop. Moving the focus moves the choice: `choose(r, c)`.
 * `draw` takes the labels of rows, columns and corner, the chosen place, and
 * `paint(cell, r, c)`, which is left out while `stamp` stays the same.
 */
export function grid(label, className, choose) {
  const root = h("div", {
    role: "grid",
    "aria-label": label,
    class: `grid ${className}`,
  });
  let cells = [];
  let chosenCell;
  let built;
  let painted;

  const build = (rows, columns, corner) => {
    const header = (text, kind = {}) =>
      h("span", { role: "columnheader", ...kind }, text);
    const cell = (r, c) =>
      h("span", { role: "gridcell", "data-at": `${r},${c}`, tabindex: -1 });
    cells = rows.map((_, r) => columns.map((_, c) => cell(r, c)));
    const lines = cells.map((line, r) =>
      h("div", { role: "row" }, h("span", { role: "rowheader" }, rows[r]), ...line),
    );
    const first = header(corner, { class: "corner" });
    const size = (text) => (String(text).length > 2 ? {} : { class: "short" });
    const head = columns.map((text) => header(text, size(text)));
    root.replaceChildren(
      h("div", { role: "row", class: "head" }, first, ...head),
      ...lines,
    );
    root.style.setProperty("--columns", columns.length);
    chosenCell = undefined;
  };

  const mark = (cell, chosen) => {
    if (!cell) return;
    cell.tabIndex = chosen ? 0 : -1;
    cell.ariaSelected = chosen;
    cell.parentElement.classList.toggle("here", chosen);
  };

  const go = (row, column) => {
    const r = Math.min(cells.length - 1, Math.max(0, row));
    const c = Math.min(cells[r].length - 1, Math.max(0, column));
    choose(r, c);
    cells[r][c].focus();
  };

  const cellOf = (event) => event.target.closest("[data-at]");
  const place = (event) => cellOf(event)?.dataset.at.split(",").map(Number);

  root.addEventListener("pointerover", (event) => {
    const cell = cellOf(event);
    if (cell) cell.title = cell.ariaLabel;
  });
  root.addEventListener("click", (event) => {
    const at = place(event);
    if (at) go(...at);
  });
  root.addEventListener("keydown", (event) => {
    const at = place(event);
    if (!at || event.altKey || event.metaKey) return;
    const [r, c] = at;
    const last = cells[r].length - 1;
    const moves = {
      ArrowLeft: [r, c - 1],
      ArrowRight: [r, c + 1],
      ArrowUp: [r - 1, c],
      ArrowDown: [r + 1, c],
      Home: [event.ctrlKey ? 0 : r, 0],
      End: [event.ctrlKey ? cells.length - 1 : r, last],
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    go(...moves[event.key]);
  });

  const draw = ({ rows, columns, corner = label, chosen: [r, c], paint, stamp }) => {
    const wanted = JSON.stringify([rows, columns]);
    const fresh = wanted !== built;
    if (fresh) build(rows, columns, corner);
    if (fresh || stamp === undefined || stamp !== painted) {
      cells.forEach((line, i) => line.forEach((cell, j) => paint(cell, i, j)));
    }
    built = wanted;
    painted = stamp;
    mark(chosenCell, false);
    chosenCell = cells[r][c];
    mark(chosenCell, true);
  };
  return { root, draw };
}

/** The scale of the colours of weights, from `low` to `high`. */
export function legend(low, high) {
  const bar = h("span", { class: "ramp" });
  const draw = (dark) => {
    const stops = scaleStops(dark).map(([at, colour]) => `${colour} ${100 * at}%`);
    bar.style.background = `linear-gradient(90deg, ${stops})`;
  };
  return { root: h("p", { class: "legend" }, `weight ${low} `, bar, ` ${high}`), draw };
}

// ---- colours on the page

/** Colours a cell that shows `weight`. */
export function shade(cell, weight, dark) {
  const rgb = shadeOf(weight, dark);
  cell.style.cssText = `background:${css(rgb)};color:${inkOn(rgb)}`;
}

/** Whether `node` stands on a dark background, whoever painted it. */
export function standsOnDark(node) {
  const pixel = new OffscreenCanvas(1, 1).getContext("2d", {
    willReadFrequently: true,
  });
  for (let at = node; at; at = at.parentElement ?? at.getRootNode().host) {
    pixel.clearRect(0, 0, 1, 1);
    // An element off the page has no colour, and leaves the one that is there.
    pixel.fillStyle = "transparent";
    pixel.fillStyle = getComputedStyle(at).backgroundColor;
    pixel.fillRect(0, 0, 1, 1);
    const [r, g, b, alpha] = pixel.getImageData(0, 0, 1, 1).data;
    if (alpha > 127) return luminance([r, g, b]) < 0.2;
  }
  const scheme = getComputedStyle(node).colorScheme;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)").matches;
  return scheme.includes("dark") && (prefersDark || !scheme.includes("light"));
}

// ---- taking the picture along

function save(name, blob) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function savePng(name, svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = h("canvas", { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => save(name, blob));
}

/** Buttons that save the state of the moment; `rows()` are those of the CSV. */
export function exports(name, picture, rows) {
  const button = (text, onclick) => h("button", { type: "button", onclick }, text);
  const blob = (text, type) => new Blob([text], { type });
  const lines = () =>
    rows()
      .map((row) => row.map(quote).join(","))
      .join("\r\n");
  const quote = (x) => (/[",\r\n]/.test(x) ? `"${String(x).replaceAll('"', '""')}"` : x);
  return h(
    "p",
    { class: "exports" },
    button("Save SVG", () => save(`${name}.svg`, blob(picture(), "image/svg+xml"))),
    button("Save PNG", () => savePng(`${name}.png`, picture())),
    button("Save CSV", () => save(`${name}.csv`, blob(`\ufeff${lines()}`, "text/csv"))),
  );
}

// ---- the frame: shadow root, theme, model. _host.py puts STYLES in front.

/** A sentence to read, and the same one for screen readers, at most twice a second. */
function speech() {
  const seen = h("p", { class: "finding" });
  const heard = h("p", { class: "heard", role: "status" });
  let timer;
  const say = (text) => {
    if (seen.textContent === text) return;
    const first = !seen.textContent;
    seen.textContent = text;
    if (first) return;
    timer ??= setTimeout(() => {
      heard.textContent = seen.textContent;
      timer = undefined;
    }, 500);
  };
  return { nodes: [seen, heard], say };
}

const quietly = (action) => {
  try {
    action();
  } catch {
    // A static page has no kernel to tell, and its model may refuse.
  }
};

/**
 * Puts an explorer into `el`. `names` are the choices that the model holds;
 * `build(set, spoken)` returns its nodes, `draw(dark)` and `sentence()`; it may place
 * `spoken`, the nodes of the sentence, and call `set` with new choices.
 * The page is touched last: whatever fails before leaves the static figure alone.
 */
export function frame({ model, el }, title, names, build) {
  const named = { role: "group", "aria-label": title };
  // JupyterLab's shortcuts see the host and not what has the focus inside it, and leave
  // the keys of an element with this attribute alone, in command mode too.
  const keys = { "data-lm-suppress-shortcuts": "true" };
  const host = h("div", { class: "mha-explorer", ...named, ...keys });
  const root = host.attachShadow({ mode: "open" });
  // A page that listens for keys, such as one of slides, sees the host alone, too.
  host.addEventListener("keydown", (event) => {
    const inside = event.composedPath()[0];
    if (event.defaultPrevented || inside.matches("input, select")) event.stopPropagation();
  });

  const set = (choices) => {
    for (const [name, value] of Object.entries(choices)) model.set(name, value);
    repaint();
    quietly(() => model.save_changes());
  };
  const spoken = speech();
  const { nodes, draw, sentence } = build(set, spoken.nodes);
  root.append(h("style", {}, STYLES), h("div", { class: "paper" }, ...nodes));

  const theme = () => (standsOnDark(el) ? "dark" : "light");
  const paint = () => {
    host.dataset.theme = theme();
    draw(host.dataset.theme === "dark");
    spoken.say(sentence());
  };
  let waiting = false;
  function repaint() {
    if (waiting) return;
    waiting = true;
    queueMicrotask(() => {
      waiting = false;
      paint();
    });
  }
  paint();

  const later = () => {
    repaint();
    // A host may fetch the colours of its new theme first.
    setTimeout(repaint, 300);
  };
  const watcher = new MutationObserver(later);
  for (const node of [document.documentElement, document.body]) {
    watcher.observe(node, { attributes: true });
  }
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", later);
  // An output may be made off the page, or hidden, and gets its background later.
  const shown = new ResizeObserver(() => {
    if (theme() !== host.dataset.theme) repaint();
  });
  shown.observe(host);
  for (const name of names) model.on(`change:${name}`, repaint);
  el.replaceChildren(host);
  return () => {
    watcher.disconnect();
    shown.disconnect();
    scheme.removeEventListener("change", later);
    for (const name of names) quietly(() => model.off(`change:${name}`, repaint));
  };
}
