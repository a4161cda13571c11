// Lists to choose from.

import { h } from "./view.mjs";

/** A list to choose from; `choose(i)` gets the place of what is chosen. */
export function choice(name, options, choose) {
  const items = options.map((text, value) => h("option", { value }, text));
  const onchange = () => choose(Number(select.value));
  const select = h("select", { onchange, "aria-label": name }, ...items);
  return { select, label: h("label", {}, name, select) };
}
