// The plain text of a tree: of MyST nodes as well as of the HTML nodes made from them.
import { h } from "hastscript";

export const text = (value) => ({ type: "text", value });

/** HTML as it stands (formulas, outputs); `words` is what a reader would read in it. */
export const raw = (value, words = "") => ({ type: "raw", value, data: { words } });

/** Chinese words are marked as such, for their sound and for the shape of their signs. */
export const inItsLanguage = (value) =>
  value
    .split(/(\p{Script=Han}+)/u)
    .map((part, i) => (i % 2 ? h("span", { lang: "zh-Hans" }, part) : text(part)))
    .filter((part) => part.value !== "");

export const squeezed = (value) => value.replace(/\s+/g, " ").trim();

export function textOf(node) {
  if (Array.isArray(node)) return node.map(textOf).join("");
  if (node.type === "raw") return node.data.words;
  return node.value ?? textOf(node.children ?? []);
}
