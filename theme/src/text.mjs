// The plain text of a tree: of MyST nodes as well as of the HTML nodes made from them.

export const text = (value) => ({ type: "text", value });

/** HTML as it stands (formulas, outputs); `words` is what a reader would read in it. */
export const raw = (value, words = "") => ({ type: "raw", value, data: { words } });

export const squeezed = (value) => value.replace(/\s+/g, " ").trim();

export function textOf(node) {
  if (Array.isArray(node)) return node.map(textOf).join("");
  if (node.type === "raw") return node.data.words;
  return node.value ?? textOf(node.children ?? []);
}
