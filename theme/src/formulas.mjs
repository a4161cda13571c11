// Formulas, which MyST has rendered with KaTeX, except those inside raw HTML.
import { h } from "hastscript";
import katex from "katex";
import { raw, textOf } from "./text.mjs";

export const inlineMath = (node) => raw(node.html, readable(node.value));

/** A number stands where the author asked for one: by a label here, by \tag in TeX. */
export function math(node) {
  const isNumbered = node.label && node.enumerator;
  const number = isNumbered ? h("span.number", `(${node.enumerator})`) : undefined;
  return h("div.equation", { id: node.html_id }, [raw(node.html), number]);
}

/** The formula that a `div` or `span` of raw HTML holds, or what `handler` makes. */
export const orElse = (handler) => (node, page) => {
  const value = textOf(node);
  if (node.class === "math-inline")
    return raw(katex.renderToString(value), readable(value));
  if (node.class !== "math-display") return handler(node, page);
  return h("div.equation", {}, raw(katex.renderToString(value, { displayMode: true })));
};

/** `d_\text{model}` reads as `d_model` in search results. */
const readable = (tex) => tex.replace(/\\[a-zA-Z]+|[\\{}]/g, "");
