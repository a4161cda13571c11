// What a notebook cell left behind, in the richest form that needs no kernel.
import Anser from "anser";
import { h } from "hastscript";
import { raw } from "./text.mjs";

const WIDGET = "application/vnd.jupyter.widget-view+json";
const IMAGES = ["image/svg+xml", "image/png", "image/jpeg"];
const DRAWING = /<figure><img src="data:image\/svg\+xml;base64,([^"]+)"/;

export function output(node, page) {
  const result = node.jupyter_data;
  if (result.output_type === "error") return error(result);
  if (result.output_type === "stream")
    return terminal(joined(result.text), result.name);
  return display(result.data ?? {}, page);
}

function display(data, page) {
  const content = (mime) =>
    data[mime].content ?? page.site.blob(data[mime].path).toString();
  const plain = data["text/plain"] ? content("text/plain") : "";
  if (data["text/html"]) {
    const html = content("text/html");
    return [h("div.html-output", {}, raw(html, plain)), ...toSave(html, plain, page)];
  }
  const image = IMAGES.find((mime) => data[mime]);
  if (image) return picture(image, data[image], plain, page);
  if (data[WIDGET])
    return h("p.needs-kernel", "This control needs a running notebook.");
  if (data["text/plain"]) return terminal(plain, "plain");
  page.problem(
    `an output has no form that a page can show: ${Object.keys(data).join(", ")}`,
  );
  return [];
}

/** A figure lies beside its page too, as a file to take along: onto a slide, say. */
function toSave(html, plain, page) {
  const [, data] = html.match(DRAWING) ?? [];
  if (!data) return [];
  page.figures += 1;
  const name = `figure-${page.figures}.svg`;
  const { href, download } = page.site.beside(name, Buffer.from(data, "base64"));
  const [sentence] = plain.split(/(?<=[.?!])\s/);
  const ariaLabel = `Save SVG of figure ${page.figures}: ${sentence}`;
  return [h("a.save", { href, download, ariaLabel }, "Save SVG")];
}

function picture(mime, { content, path }, plain, page) {
  // Python's default text for a figure or an image object describes nothing.
  if (!plain || plain.startsWith("<"))
    page.problem(`an ${mime} output has no text to stand for it`);
  const src = path
    ? page.site.asset(path)
    : `data:${mime},${encodeURIComponent(content)}`;
  return h("img", { src, alt: plain });
}

/** The message a reader should read first; the way it came about is folded. */
function error({ ename, evalue, traceback }) {
  return h("div.error", [
    h("pre", h("code", [h("b", `${ename}:`), ` ${evalue}`])),
    traceback
      ? h("details", h("summary", "Show the traceback"), terminal(joined(traceback)))
      : [],
  ]);
}

function terminal(text, className) {
  const html = Anser.ansiToHtml(Anser.escapeForHtml(text), { use_classes: true });
  return h("pre", { className }, h("code", {}, raw(html, text)));
}

const joined = (text) => [text].flat().join("");
