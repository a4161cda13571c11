// Notebooks have no directives: in chapters, first uses of glossary terms are marked here.
import { visit } from "./content.mjs";
import { text, textOf } from "./text.mjs";

const PROSE = new Set([
  "root",
  "block",
  "paragraph",
  "list",
  "listItem",
  "blockquote",
  "emphasis",
]);

/** Every term of the pages' glossaries: its name, and the place that explains it. */
export function glossaryTerms(pages) {
  const terms = [];
  for (const { mdast, slug } of pages) {
    visit(mdast, (list) => {
      if (list.type !== "glossary") return;
      visit(list, (node) => {
        if (node.type !== "definitionTerm") return;
        terms.push({ name: textOf(node), id: node.html_id, url: `/${slug}` });
      });
    });
  }
  return terms;
}

/**
 * The tree, with a reference wherever a term stands in prose for the first time.
 *
 * Headings, bold text, tables, links and code stay as they are. A term that the author
 * has linked to its entry stays as well: that is the place where it is explained.
 */
export function withFirstUses(mdast, terms) {
  if (!terms.length) return mdast;
  const forms = new Map(terms.flatMap((term) => formsOf(term.name, term)));
  const seen = new Set();
  visit(mdast, ({ type, html_id: id }) => type === "crossReference" && seen.add(id));
  const pattern = anyOf([...forms.keys()]);

  const marked = (node) => {
    if (node.type === "text") return cut(node.value);
    if (!PROSE.has(node.type)) return [node];
    return [{ ...node, children: node.children.flatMap(marked) }];
  };
  const cut = (value) => {
    const nodes = [];
    let end = 0;
    for (const { 0: word, index } of value.matchAll(pattern)) {
      const term = forms.get(word.toLowerCase());
      if (seen.has(term.id)) continue;
      seen.add(term.id);
      nodes.push(text(value.slice(end, index)), reference(term, word));
      end = index + word.length;
    }
    return [...nodes, text(value.slice(end))].filter((node) => node.value !== "");
  };
  return marked(mdast)[0];
}

const reference = ({ id, url }, word) => ({
  type: "crossReference",
  kind: "definitionTerm",
  html_id: id,
  resolved: true,
  remote: true,
  url,
  children: [text(word)],
});

/** A name in the singular and in the plural. */
function formsOf(name, term) {
  const one = name.toLowerCase();
  const many = one
    .replace(/([^aeiou])y$/, "$1ie")
    .replace(/(s|x|ch|sh)$/, "$1e")
    .concat("s");
  return [
    [one, term],
    [many, term],
  ];
}

/** Whole words; a longer name before the shorter ones that it begins with. */
function anyOf(words) {
  const literals = words
    .sort((a, b) => b.length - a.length)
    .map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return new RegExp(
    `(?<![\\p{L}\\p{N}_-])(?:${literals.join("|")})(?![\\p{L}\\p{N}_-])`,
    "giu",
  );
}
