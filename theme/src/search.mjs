// What the search box looks through: one record per section, prose apart from code.
import { textOf } from "./text.mjs";

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
    if (node.properties?.ariaHidden) return;
    if (HEADING.test(node.tagName)) start(textOf(node), node.properties.id);
    else if (CODE.has(node.tagName)) current.code += ` ${textOf(node)}`;
    else if (node.children) {
      node.children.forEach(walk);
      if (BREAKS.has(node.tagName)) records.at(-1).text += " ";
    } else current.text += textOf(node);
  }
}

const squeeze = (text) => text.replace(/\s+/g, " ").trim();
const tidy = (record) => ({
  ...record,
  text: squeeze(record.text),
  code: squeeze(record.code),
});
