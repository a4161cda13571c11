import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { maskedSoftmax } from "../../mha_teach/widgets/static/formulas.mjs";
import { svg } from "../../mha_teach/widgets/static/kit.mjs";
import {
  code,
  drawing,
  finding,
  kindOf,
  look,
  presetOf,
  seen,
  verdicts,
} from "../../mha_teach/widgets/static/mask_model.mjs";
import { close } from "./golden.mjs";

const file = new URL("../golden/mask.json", import.meta.url);
const golden = JSON.parse(readFileSync(file, "utf8"));

golden.forEach((expected, i) => {
  const { attention, mask, changed } = expected;
  const now = { mask, changed };

  test(`mask ${i}: weights and outputs of the package, before and after`, () => {
    const { was, is, change } = look(attention, now);
    const both = (name) => [was, is].map((rows) => rows.map((row) => row[name]));
    close(both("weights"), expected.weights);
    close(both("output"), expected.outputs);
    close(change, expected.change);
  });

  test(`mask ${i}: sentence, preset and verdicts as in Python`, () => {
    assert.equal(finding(attention, now), expected.sentence);
    assert.deepEqual(verdicts(attention, now), expected.verdicts);
    const preset = attention.presets[presetOf(attention, mask)];
    assert.equal(preset?.name ?? "painted", expected.preset);
  });

  test(`mask ${i}: the saved drawing is the static figure`, () => {
    const { width, height, parts } = drawing(attention, now);
    assert.equal(svg(width, height, parts), expected.picture);
  });
});

test("a query that may look at nobody has no weights", () => {
  assert.deepEqual(maskedSoftmax([3, -1, 2], [false, false, false]), [0, 0, 0]);
  close(maskedSoftmax([1000, 1000, 2000], [true, true, false]), [0.5, 0.5, 0]);
});

test("a cell leaks where an earlier token may look at a changed one", () => {
  const mask = [
    [true, true, false],
    [true, true, true],
    [true, true, true],
  ];
  const kinds = mask.map((row, r) =>
    row.map((_, c) => kindOf({ mask, changed: 2 }, r, c)),
  );
  assert.deepEqual(kinds, [
    ["open", "open", "shut"],
    ["open", "open", "leak"],
    ["open", "open", "open"],
  ]);
});

test("outputs that cannot see the change stay as they are, to the last bit", () => {
  for (const { attention, mask, changed } of golden) {
    const { change } = look(attention, { mask, changed });
    for (let i = 0; i < changed; i += 1) {
      if (!mask[i].slice(changed).includes(true)) assert.equal(change[i], 0);
    }
  }
});

test("what a token may look at is named", () => {
  const attention = { tokens: ["a", "b", "c"] };
  assert.equal(seen(attention, [true, false, true]), "a, c");
  assert.equal(seen(attention, [false, false, false]), "nobody");
});

test("a preset is written with the calls of the package, another mask cell by cell", () => {
  const { attention } = golden[0];
  const causal = code(attention, golden[0].mask, 0);
  assert.match(causal, /^from mha_teach import masks\n\n.*\nmask = masks\.causal\(6\)/);
  const cells = code(golden[6].attention, golden[6].mask, 1);
  assert.match(cells, /^import torch\n\n/);
  assert.match(cells, /\n {4}\[1, 1, 1, 0, 1\],\n/);
  assert.match(cells, /\nattn_mask = ~mask$/);
});
