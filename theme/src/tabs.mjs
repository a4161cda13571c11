// Tabs are radio buttons: arrow keys choose, the style sheet shows the chosen panel.
import { h } from "hastscript";

export function tabSet(node, page) {
  page.tabSets += 1;
  const name = `tabs-${page.tabSets}`;
  const tabs = node.children.flatMap((tab, index) => {
    const id = `${name}-${index + 1}`;
    const checked = index === 0;
    return [
      h("input", { type: "radio", name, id, checked, dataSync: tab.sync }),
      h("label", { htmlFor: id }, tab.title),
      h("div.panel", page.children(tab)),
    ];
  });
  const titles = node.children.map(({ title }) => title).join(", ");
  return h("fieldset.tabs", [h("legend", `Choose one: ${titles}`), ...tabs]);
}
