// Tables with a head and a body, as assistive technology expects them.
import { h } from "hastscript";
import { textOf } from "./text.mjs";

export function table(node, page) {
  const rows = node.children;
  const firstOfBody = rows.findIndex(({ children }) => children.some((c) => !c.header));
  const cut = firstOfBody < 0 ? rows.length : firstOfBody;
  const part = (name, some, scope) =>
    h(
      name,
      some.map((row) =>
        h(
          "tr",
          row.children.map((c) => cell(c, scope, page)),
        ),
      ),
    );
  const head = cut > 0 ? part("thead", rows.slice(0, cut), "col") : undefined;
  return h("div.scroll", h("table", [head, part("tbody", rows.slice(cut), "row")]));
}

function cell(node, scope, page) {
  const [only, ...more] = node.children;
  const isParagraph = only?.type === "paragraph" && !more.length;
  const content = page.children(isParagraph ? only : node);
  const properties = {
    colSpan: node.colspan,
    rowSpan: node.rowspan,
    className: node.align && `align-${node.align}`,
  };
  if (!node.header || !content.length) return h("td", properties, content);
  const isFormula = content.every(({ type }) => type === "raw");
  return h("th", { scope, ...properties }, isFormula ? inWords(content) : content);
}

/** A formula that names a row or a column is read out as text: not all speak MathML. */
const inWords = (formula) => [
  h("span", { ariaHidden: "true" }, formula),
  h("span.unseen", textOf(formula)),
];
