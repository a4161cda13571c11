// What is set apart from the text, and what is folded away until a reader asks.
import { h } from "hastscript";
import { withoutLinks } from "./links.mjs";
import { textOf } from "./text.mjs";

/** Content that a tag folds behind a line which opens it, or removes. */
export function folded(label, visibility, content) {
  if (visibility === "remove" || !content.length) return [];
  if (visibility !== "hide") return content;
  return [h("details.fold", [h("summary", label), ...content])];
}

/** A cell of a notebook; in a page, the part between two `+++` lines. */
export function cell(node, page) {
  const shown = isTagged(node, "figure") ? pictureFirst(node) : node;
  const content = [h("div.cell", { id: node.html_id }, page.children(shown))];
  if (isTagged(node, "guard")) return folded("Show the check", "hide", content);
  if (isTagged(node, "solution"))
    return folded("Show one way to write it", "hide", content);
  return folded("Show the cell", node.visibility, content);
}

const isTagged = (node, tag) => node.data?.tags?.includes(tag);

/** The code of a figure says in words what is to be seen: it is folded below it. */
function pictureFirst({ children: [code, outputs], ...node }) {
  const label = "Show the code of the figure";
  const below = { ...code, visibility: "hide", label };
  const children = [{ ...outputs, children: [...outputs.children, below] }];
  return { ...node, children };
}

export function outputs(node, page) {
  const shown = page.children(node);
  const content = shown.length ? [h("div.outputs", shown)] : [];
  const visibility = node.isAnswer && shown.some(moves) ? "show" : node.visibility;
  return folded("Show the output", visibility, content);
}

/** An explorer: to move it is how a reader finds the answer. */
const moves = ({ value, children = [] }) =>
  value?.includes('<script type="module"') || children.some(moves);

/**
 * Fold the first output after a "Predict" box, so that the reader decides first, and
 * the figures that follow it before the text goes on.
 */
export function foldAnswers(cells) {
  let waiting = false;
  let answered = false;
  return cells.map((each) => {
    for (const node of each.children) {
      if (node.type === "heading") waiting = false;
      if (boldOpening(node) === "Predict") waiting = true;
    }
    const answer = each.children.find(({ type }) => type === "outputs");
    answered &&= answer !== undefined;
    const isShown = answer?.children.length && answer.visibility !== "remove";
    const folds = waiting || (answered && isTagged(each, "figure"));
    if (!folds || !isShown) return each;
    waiting = false;
    answered = true;
    const hidden = { ...answer, visibility: "hide", isAnswer: true };
    const children = each.children.map((node) => (node === answer ? hidden : node));
    return { ...each, children };
  });
}

/** `Predict` for a quote that begins `**Predict.** …`; undefined for other nodes. */
function boldOpening(node) {
  if (node.type !== "blockquote") return undefined;
  const first = node.children[0]?.children?.[0];
  return first?.type === "strong" ? textOf(first).match(/^(.+)[.:]$/)?.[1] : undefined;
}

/** Notebooks have no directives: a quote that opens in bold is their box. */
export function blockquote(node, page) {
  const label = boldOpening(node);
  if (!label) return h("blockquote", page.children(node));
  const [opening, ...others] = node.children;
  const words = opening.children.slice(1);
  if (words[0]?.type === "text") {
    words[0] = { ...words[0], value: words[0].value.trimStart() };
  }
  const children = [{ ...opening, children: words }, ...others];
  const kind = label.toLowerCase().replace(/\W+/g, "-");
  return box({ children }, page, { kind, label });
}

export function admonition(node, page) {
  const folds = /\bdropdown\b/.test(node.class);
  return box(node, page, { kind: node.kind, folds });
}

export const exercise = (node, page) =>
  box(node, page, { kind: "exercise", label: numbered("Exercise", node) });

export const solution = (node, page) =>
  box(node, page, { kind: "solution", folds: true });

export function proof(node, page) {
  const name = node.kind[0].toUpperCase() + node.kind.slice(1);
  const label = node.kind === "proof" ? name : numbered(name, node);
  return box(node, page, { kind: "theorem", label });
}

const numbered = (name, { enumerator }) =>
  enumerator ? `${name} ${enumerator}` : name;

/** A labelled box; the title that the tree may carry follows the label. */
function box(node, page, { kind, label, folds = false }) {
  const [first, ...others] = node.children;
  const hasTitle = first?.type === "admonitionTitle";
  const title = hasTitle ? withoutLinks(page.children(first)) : [];
  if (label) title.unshift(title.length ? `${label}: ` : label);
  const body = page.children({ children: hasTitle ? others : node.children });
  const properties = { id: node.html_id, className: ["box", kind] };
  if (folds) return h("details", properties, [h("summary", title), ...body]);
  return h("div", { ...properties, role: "note" }, [h("p.box-title", title), ...body]);
}
