// MyST page tree (version 3) -> HTML tree. Pure: the site is asked through `site`.
import { h } from "hastscript";
import * as boxes from "./boxes.mjs";
import { listing } from "./code.mjs";
import * as formulas from "./formulas.mjs";
import * as links from "./links.mjs";
import { output } from "./outputs.mjs";
import { table } from "./tables.mjs";
import { tabSet } from "./tabs.mjs";
import { withFirstUses } from "./terms.mjs";
import { inItsLanguage, raw, text } from "./text.mjs";

/**
 * Render one page.
 *
 * `site` answers `page(url)`, `file(node)` and `asset(url)` with an address,
 * `blob(url)` with bytes, `beside(name, bytes)` with a link to the file that it puts next
 * to the page, `explanation(id)` with what a term or a labelled paragraph says, if
 * anything, and `reference(id)` with the text of a bibliography entry. `terms`
 * are those whose first use is to be marked.
 */
export function renderPage({ mdast, references = {} }, site) {
  const page = {
    site,
    outline: [],
    footnotes: [],
    problems: [],
    abbreviations: new Set(),
    tabSets: 0,
    figures: 0,
    problem: (message) => page.problems.push(message),
    children: ({ children = [] }) => children.flatMap((child) => render(child, page)),
  };
  const body = render(withFirstUses(mdast, site.terms), page);
  const { order = [], data } = references.cite ?? {};
  const cited = order.map((key) => h("li", { id: `ref-${key}` }, raw(data[key].html)));
  const ends = [
    ...endSection("footnotes", "Footnotes", page.footnotes),
    ...endSection("works-cited", "Works cited", cited),
  ];
  return { body: [...body, ...ends], outline: page.outline, problems: page.problems };
}

function render(node, page) {
  const handler = handlers[node.type];
  if (handler) return handler(node, page);
  const name = node.name ? `${node.type} "${node.name}"` : `"${node.type}"`;
  page.problem(`the theme does not know the node type ${name}`);
  return [];
}

const as = (selector) => (node, page) =>
  h(selector, { id: node.html_id, className: node.class }, page.children(node));
const only = (node, page) => page.children(node);
const nothing = () => [];

const handlers = {
  // Text
  abbreviation: links.abbreviation,
  break: () => h("br"),
  cite: links.cite,
  citeGroup: links.citeGroup,
  comment: nothing,
  crossReference: links.crossReference,
  delete: as("del"),
  emphasis: as("em"),
  footnoteDefinition: links.footnoteDefinition,
  footnoteReference: links.footnoteReference,
  inlineCode: (node) => h("code", node.value),
  inlineMath: formulas.inlineMath,
  keyboard: as("kbd"),
  link: links.link,
  smallcaps: as("span.smallcaps"),
  span: formulas.orElse(as("span")),
  strong: as("strong"),
  subscript: as("sub"),
  superscript: as("sup"),
  text: (node) => inItsLanguage(node.value),
  underline: as("u"),

  // Blocks
  block: boxes.cell,
  blockquote: boxes.blockquote,
  code,
  definitionDescription: as("dd"),
  definitionList: as("dl"),
  definitionTerm: as("dt"),
  div: formulas.orElse(as("div")),
  glossary: as("div.glossary"),
  heading,
  include: only,
  list,
  listItem,
  math: formulas.math,
  paragraph: as("p"),
  root: (node, page) => page.children({ children: boxes.foldAnswers(node.children) }),
  thematicBreak: () => h("hr"),

  // Figures and tables
  caption: as("figcaption"),
  captionNumber: (node, page) => [h("b", page.children(node)), text(" ")],
  container: (node, page) => as(`figure.of-${node.kind}`)(node, page),
  image,
  legend: as("div.legend"),
  table,

  // Boxes
  admonition: boxes.admonition,
  aside: (node, page) => h("div.aside", { role: "note" }, page.children(node)),
  card: as("div.card"),
  cardTitle: as("p.card-title"),
  details,
  exercise: boxes.exercise,
  grid,
  proof: boxes.proof,
  solution: boxes.solution,
  summary: (node, page) => h("summary", links.withoutLinks(page.children(node))),
  tabSet,

  // Notebook outputs
  output,
  outputs: boxes.outputs,
};

function details(node, page) {
  const { html_id: id, open, class: className } = node;
  return h("details", { id, open, className }, page.children(node));
}

function code({ value, label = "Show the code", visibility, ...node }) {
  const { lang, showLineNumbers: numbered, emphasizeLines: emphasized } = node;
  const content = h("div.code", listing(value, { lang, numbered, emphasized }));
  return boxes.folded(label, visibility, [content]);
}

/** The heading is its own link, so that its address can be copied. */
function heading(node, page) {
  const id = node.html_id;
  const level = Math.min(6, node.depth);
  const content = links.withoutLinks(page.children(node));
  if (level <= 3) page.outline.push({ level, id, content });
  return h(`h${level}`, { id }, h("a", { href: `#${id}` }, content));
}

function list(node, page) {
  const start = node.start > 1 ? node.start : undefined;
  return h(node.ordered ? "ol" : "ul", { start }, page.children(node));
}

function listItem(node, page) {
  const content = page.children(node);
  if (node.checked == null) return h("li", content);
  const { checked } = node;
  const ariaLabel = checked ? "done" : "to do";
  const mark = h("input", { type: "checkbox", disabled: true, checked, ariaLabel });
  return h("li.task", [mark, ...content]);
}

function image({ url, urlSource, alt, width }, page) {
  if (alt === undefined) page.problem(`the image ${urlSource} has no alt text`);
  return h("img", { src: page.site.asset(url), alt, width });
}

function grid(node, page) {
  const style = `--columns: ${Math.max(...node.columns)}`;
  return h("div.grid", { style }, page.children(node));
}

function endSection(id, title, items) {
  if (!items.length) return [];
  return [h("section.end", [h("h2", { id }, title), h("ol", items)])];
}
