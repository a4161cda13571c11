// What every explorer needs and no page has to be there for: numbers, colours, pictures.
// No library: the text of this file travels inside each output that uses it.

// ---- text and numbers

const ENTITIES = { "&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "#x27" };
export const escape = (text) =>
  String(text).replace(/[&<>"']/g, (c) => `&${ENTITIES[c]};`);

/** Puts "�" for each character that XML, and so a picture, may not hold. */
const printable = (text) =>
  String(text).replace(/[\0-\x08\v\f\x0e-\x1f\ud800-\udfff\ufffe\uffff]/gu, "�");

/** For programs to read: 0.5 → "0.50", -1 → "-1.00"; never "-0.00". */
export function numeral(x, digits = 2) {
  const text = x.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text;
}

/** The same for people, with a minus sign: -1 → "−1.00". */
export const number = (x, digits) => numeral(x, digits).replace("-", "−");

export const count = (n) => n.toLocaleString("en-GB");

/** "100 %" means all of them and "0 %" none: nothing is rounded up to certainty. */
export function percent(x) {
  if (x > 0 && x < 0.01) return "under 1 %";
  return `${x < 1 ? Math.min(99, Math.floor(100 * x + 0.5)) : 100} %`;
}

/** "a", "a and b", "a, b and c": `and` puts the last one to the others. */
export function listed(items, and) {
  const last = items.at(-1);
  return items.length > 1 ? and(items.slice(0, -1).join(", "), last) : last;
}

/** Cuts a text to 12 letters. */
export function short(text) {
  const letters = Array.from(text);
  return letters.length <= 12 ? text : `${letters.slice(0, 11).join("")}…`;
}

export function bytes(base64) {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

/** Little-endian half-precision numbers, as NumPy's "<f2" writes them. */
export function halves(base64) {
  const raw = bytes(base64);
  return Array.from({ length: raw.length / 2 }, (_, i) => {
    const bits = raw[2 * i] | (raw[2 * i + 1] << 8);
    const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
    const sign = bits & 0x8000 ? -1 : 1;
    if (exponent === 0) return sign * fraction * 2 ** -24;
    return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  });
}

/** Cuts a flat list into lists of the given inner sizes: reshape([1, 2, 3, 4], 2) → [[1, 2], [3, 4]]. */
export function reshape(flat, ...sizes) {
  return sizes.reduceRight(
    (list, size) =>
      Array.from({ length: list.length / size }, (_, i) =>
        list.slice(i * size, (i + 1) * size),
      ),
    flat,
  );
}

// ---- colour: more weight is further from the paper, in either theme

const AT = [0, 0.08, 0.25, 0.5, 0.75, 1];
const LIGHT = ["f4f7fb", "d6e4f3", "96bee4", "4a8ac8", "18569c", "062454"];
const DARK = ["1e242c", "22374f", "265486", "4a8fd0", "8fc4f2", "e8f4ff"];
const channels = (hex) => [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16));

export function ramp(weight, dark) {
  const stops = dark ? DARK : LIGHT;
  const w = Math.min(1, Math.max(0, weight));
  const i = Math.max(
    1,
    AT.findIndex((at) => w <= at),
  );
  const t = (w - AT[i - 1]) / (AT[i] - AT[i - 1]);
  const [from, to] = [channels(stops[i - 1]), channels(stops[i])];
  return from.map((c, k) => Math.floor(c + t * (to[k] - c) + 0.5));
}

export function luminance(rgb) {
  const [r, g, b] = rgb.map((c) =>
    c / 255 <= 0.04045 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** The ramp as pairs of weight and colour, for a legend. */
export const scaleStops = (dark) => AT.map((at) => [at, css(ramp(at, dark))]);

export const css = (rgb) => `rgb(${rgb.join(" ")})`;
export const inkOn = (rgb) => (luminance(rgb) > 0.179 ? "#000000" : "#ffffff");

const shades = [LIGHT, DARK].map((_, dark) =>
  Array.from({ length: 256 }, (_, i) => ramp(i / 255, dark === 1)),
);

/** The nearest of 256 colours. */
export const shadeOf = (weight, dark) => shades[Number(dark)][Math.round(255 * weight)];

// ---- pictures: the same SVG, to the letter, as _svg.py writes for the static figure

export const svg = (width, height, parts) =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
  `viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif">` +
  `<rect width="${width}" height="${height}" fill="#ffffff"/>${parts.join("")}</svg>`;

export const rect = (x, y, width, height, fill, stroke = "none") =>
  `<rect x="${x}" y="${y}" width="${width}" height="${height}" ` +
  `fill="${fill}" stroke="${stroke}"/>`;

export const words = (
  x,
  y,
  text,
  { size = 13, fill = "#1c2128", anchor = "start" } = {},
) =>
  `<text x="${x}" y="${y}" font-size="${size}" fill="${fill}" ` +
  `text-anchor="${anchor}">${escape(printable(text))}</text>`;

/** A drawing `{ width, height, parts }` with a sentence above it, as it is saved. */
export function captioned(sentence, { width, height, parts }) {
  const lines = wrap(sentence, Math.floor(width / 8));
  const text = lines.map((line, i) => words(20, 30 + 20 * i, line, { size: 15 }));
  const below = `<g transform="translate(0 ${20 + 20 * lines.length})">${parts.join("")}</g>`;
  return svg(width, height + 20 + 20 * lines.length, [...text, below]);
}

/** Breaks a text into lines of at most `width` characters. */
export function wrap(text, width) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (longer.length <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
