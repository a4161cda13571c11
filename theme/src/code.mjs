// Code listings, highlighted here so that a page needs no script for it.
import { h } from "hastscript";
import bash from "highlight.js/lib/languages/bash";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";

const lowlight = createLowlight({ bash, json, python, yaml });
lowlight.registerAlias({ bash: ["console", "shell"], python: ["ipython", "ipython3"] });

/** A `<pre>`; where lines are numbered or emphasized, each is an element. */
export function listing(value, { lang, numbered = false, emphasized = [] } = {}) {
  const text = value.replace(/\n$/, "");
  const body = lowlight.registered(lang ?? "")
    ? lowlight.highlight(lang, text).children
    : [{ type: "text", value: text }];
  if (!numbered && !emphasized.length) return h("pre", h("code", body));
  const lines = splitLines(body).map((line, index) =>
    h(
      "span.line",
      {
        id: numbered ? `L${index + 1}` : undefined,
        className: emphasized.includes(index + 1) ? "emphasized" : undefined,
      },
      [...line, { type: "text", value: "\n" }],
    ),
  );
  return h("pre", { className: numbered ? "numbered" : undefined }, h("code", lines));
}

/** Cut highlighted nodes at line ends; an element that spans lines is repeated. */
function splitLines(nodes) {
  const lines = [[]];
  for (const node of nodes) {
    const parts =
      node.type === "text"
        ? node.value
            .split("\n")
            .map((value) => (value ? [{ type: "text", value }] : []))
        : splitLines(node.children).map((children) => [{ ...node, children }]);
    lines.at(-1).push(...parts[0]);
    lines.push(...parts.slice(1));
  }
  return lines;
}
