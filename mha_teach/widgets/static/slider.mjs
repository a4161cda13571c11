// A slider, and below it a picture that Python draws for each of its values.

const UNSEEN =
  "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)";
const LINE = "display:flex;flex-wrap:wrap;align-items:center;gap:0.6em";

function create(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

function render({ model, el }) {
  const [min, max, step] = ["low", "high", "step"].map((name) => model.get(name));
  // JupyterLab leaves the keys of an element with this attribute alone.
  const keys = { "data-lm-suppress-shortcuts": "true" };
  const size = { style: "width:20em;max-width:100%" };
  const slider = create("input", { type: "range", min, max, step, ...keys, ...size });
  const label = create("label", { style: LINE }, model.get("name"), slider);
  const number = create("span", { style: "font-variant-numeric:tabular-nums" });
  const picture = create("div", {});
  // That a picture changed is not read out: its alternative text is, from here.
  const spoken = create("p", { role: "status", style: UNSEEN });

  const write = () => {
    number.textContent = Number(slider.value).toFixed(model.get("decimals"));
  };
  const follow = () => {
    slider.value = model.get("value");
    write();
  };
  const draw = () => {
    picture.innerHTML = model.get("picture");
    spoken.textContent = picture.querySelector("img")?.alt ?? "";
  };
  slider.addEventListener("input", write);
  slider.addEventListener("change", () => {
    model.set("value", Number(slider.value));
    model.save_changes();
  });
  model.on("change:value", follow);
  model.on("change:picture", draw);
  follow();
  draw();
  el.replaceChildren(create("div", { style: LINE }, label, number), picture, spoken);
  return () => {
    model.off("change:value", follow);
    model.off("change:picture", draw);
  };
}

export default { render };
