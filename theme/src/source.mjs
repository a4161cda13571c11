// A file of the project that a page links to: the code that the book was built from,
// with line numbers, an outline of what it defines, and what a search finds in it.
import { h } from "hastscript";
import { listing } from "./code.mjs";
import { squeezed, text as textNode } from "./text.mjs";

const LANGUAGES = {
  ipynb: "json",
  json: "json",
  py: "python",
  sh: "bash",
  yaml: "yaml",
  yml: "yaml",
};
const DEFINITION = /^( *)(?:async )?(?:class|def) (\w+)/;
const SUMMARY = /"""(.+?)(?:\n\s*\n|""")/s;

/** The body of the page, and an outline of its public classes and functions. */
export function renderSource(path, text) {
  const lang = languageOf(path);
  const body = [h("div.code.source", listing(text, { lang, numbered: true }))];
  const outline = definitions(path, text)
    .filter(({ name }) => !name.startsWith("_"))
    .map(({ name, level, id }) => ({ level, id, content: [textNode(name)] }));
  return { body, outline };
}

/** One record for the opening of a Python file, one for each thing it defines. */
export function sourceRecords(path, text) {
  if (languageOf(path) !== "python") return [];
  const url = `source/${path}.html`;
  const places = [{ name: "", line: 1 }, ...definitions(path, text)];
  const lines = text.split("\n");
  return places.map(({ name, line, id }, index) => {
    const end = places[index + 1]?.line ?? lines.length + 1;
    const code = lines.slice(line - 1, end - 1).join("\n");
    return {
      title: path,
      section: name,
      url: id ? `${url}#${id}` : url,
      text: squeezed(code.match(SUMMARY)?.[1] ?? "").replaceAll("`", ""),
      code: squeezed(code),
    };
  });
}

const languageOf = (path) => LANGUAGES[path.split(".").at(-1)];

function definitions(path, text) {
  if (languageOf(path) !== "python") return [];
  return text.split("\n").flatMap((content, index) => {
    const [, indent, name] = content.match(DEFINITION) ?? [];
    if (name === undefined || indent.length > 4) return [];
    const line = index + 1;
    return [{ name, line, id: `L${line}`, level: indent ? 3 : 2 }];
  });
}
