// What points elsewhere: links, references, citations, footnotes, and what explains.
import { h } from "hastscript";
import { text, textOf } from "./text.mjs";

/** Inside a summary or a heading, a link would be a control within a control. */
export const withoutLinks = (nodes) =>
  nodes.flatMap((node) => (node.tagName === "a" ? withoutLinks(node.children) : node));

export function link(node, page) {
  const { url } = node;
  const content = page.children(node);
  const to = (href) => h("a", { href, className: node.class }, content);
  if (/^(https?|mailto):/.test(url)) return to(url);
  if (node.internal) return to(page.site.page(url));
  if (node.static) return to(page.site.file(node));
  page.problem(`the link to ${url} leads to no file of this project`);
  return content;
}

export function crossReference(node, page) {
  const { html_id: id, label, kind, remote, resolved, url } = node;
  const content = page.children(node);
  if (!resolved) {
    page.problem(`the reference to "${label}" has no target`);
    return content;
  }
  const href = `${remote ? page.site.page(url) : ""}#${id}`;
  const className = kind === "definitionTerm" ? "term" : undefined;
  return h("a", { href, title: page.site.explanation(id), className }, content);
}

export function citeGroup(node, page) {
  const entries = page.children(node);
  const listed = entries.flatMap((entry, i) => (i ? [text("; "), entry] : [entry]));
  return node.kind === "narrative" ? listed : [text("("), ...listed, text(")")];
}

export function cite(node, page) {
  const href = `#ref-${node.identifier}`;
  const title = page.site.reference(node.identifier);
  return h("a", { href, title }, page.children(node));
}

/** Marked where it first stands on a page; after that only the mouse finds it. */
export function abbreviation(node, page) {
  const name = textOf(node);
  const tabIndex = page.abbreviations.has(name) ? undefined : 0;
  page.abbreviations.add(name);
  return h("abbr", { title: node.title, tabIndex }, page.children(node));
}

export function footnoteReference({ identifier, enumerator }) {
  const place = { id: `fnref-${identifier}`, href: `#fn-${identifier}` };
  return h("sup.footnote", h("a", place, enumerator));
}

export function footnoteDefinition(node, page) {
  const place = { href: `#fnref-${node.identifier}`, ariaLabel: "Back to the text" };
  const back = h("a.back", place, "↩");
  const content = page.children(node);
  const last = content.at(-1);
  (last.tagName === "p" ? last.children : content).push(back);
  page.footnotes.push(h("li", { id: `fn-${node.identifier}` }, content));
  return [];
}
