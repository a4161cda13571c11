// A file of the project that a page links to: the code that the book was built from,
// with line numbers, and an outline of what it defines.
import { h } from "hastscript";
import { listing } from "./code.mjs";

const LANGUAGES = {
  ipynb: "json",
  json: "json",
  py: "python",
  sh: "bash",
  yaml: "yaml",
  yml: "yaml",
};
const DEFINITION = /^( *)(?:async )?(?:class|def) (\w+)/;

/** The body of the page, and an outline of its public classes and functions. */
export function renderSource(path, text) {
  const lang = LANGUAGES[path.split(".").at(-1)];
  const body = [h("div.code.source", listing(text, { lang, numbered: true }))];
  return { body, outline: lang === "python" ? definitions(text) : [] };
}

function definitions(text) {
  const found = [];
  text.split("\n").forEach((line, index) => {
    const [, indent, name] = line.match(DEFINITION) ?? [];
    if (name === undefined || indent.length > 4 || name.startsWith("_")) return;
    found.push({
      level: indent ? 3 : 2,
      id: `L${index + 1}`,
      content: [{ type: "text", value: name }],
    });
  });
  return found;
}
