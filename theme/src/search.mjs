// What the search box looks through: one record per section, prose apart from code.
import { squeezed, textOf } from "./text.mjs";

const HEADING = /^h[23]$/;
const CODE = new Set(["pre", "script", "style"]);
const BREAKS = new Set([
  "p",
  "li",
  "td",
  "th",
  "dd",
  "dt",
  "div",
  "figcaption",
  "summary",
  "br",
]);

export function searchRecords(title, path, body) {
  const records = [];
  const start = (section, id) => {
    records.push({
      title,
      section,
      url: id ? `${path}#${id}` : path,
      text: "",
      code: "",
    });
  };
  start("", undefined);
  walk({ children: body });
  return records.map(tidy).filter(({ section, text, code }) => section || text || code);

  function walk(node) {
    const current = records.at(-1);
    if (node.properties?.ariaHidden || node.properties?.download) return;
    if (isSolution(node)) return walk(node.children.find(isSummary));
    if (HEADING.test(node.tagName)) start(textOf(node), node.properties.id);
    else if (CODE.has(node.tagName)) current.code += ` ${textOf(node)}`;
    else if (node.children) {
      node.children.forEach(walk);
      if (BREAKS.has(node.tagName)) records.at(-1).text += " ";
    } else current.text += textOf(node);
  }
}

/** Whoever searches for a word must not read an answer in its excerpt. */
const isSolution = ({ tagName, properties }) =>
  tagName === "details" && properties.className?.includes("solution");
const isSummary = ({ tagName }) => tagName === "summary";

const tidy = (record) => ({
  ...record,
  text: squeezed(record.text),
  code: squeezed(record.code),
});
