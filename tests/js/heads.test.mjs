import assert from "node:assert/strict";
import test from "node:test";
import { drawing } from "../../mha_teach/widgets/static/heads_draw.mjs";
import {
  attention,
  costs,
  explain,
  finding,
  steps,
  wrongSize,
} from "../../mha_teach/widgets/static/heads_model.mjs";
import { svg } from "../../mha_teach/widgets/static/kit.mjs";
import { close, golden } from "./golden.mjs";

const { grid, shown } = golden.heads;

for (const { setting, ...expected } of shown) {
  const [h, w] = setting;

  test(`${h} heads of width ${w}: sentence, cost, scores and weights as in Python`, () => {
    assert.equal(finding(grid, h, w), expected.sentence);
    assert.deepEqual(costs(grid.task, h, w), expected.costs);
    const heads = attention(grid, h, w);
    close(
      heads.map((head) => head.scores),
      expected.scores,
    );
    close(
      heads.map((head) => head.weights),
      expected.weights,
    );
  });

  test(`${h} heads of width ${w}: the saved drawing is the static figure`, () => {
    const { width, height, parts } = drawing(grid, h, w);
    assert.equal(svg(width, height, parts), expected.picture);
  });
}

test("every shape has an axis name for each size, and sizes multiply through", () => {
  const list = steps(grid.task, 11, 13);
  for (const [, , tensors] of list) {
    for (const [, sizes, names] of tensors)
      assert.equal(sizes.length, names.split(", ").length);
  }
  const shape = (name) => list.find((step) => step[0] === name)[2].at(-1)[1];
  assert.deepEqual(shape("split"), [11, 8, 3]);
  assert.deepEqual(shape("scores"), [11, 8, 8]);
  assert.deepEqual(shape("merge"), [8, 33]);
  assert.deepEqual(shape("output"), [8, 17]);
});

test("512 and 12 are explained, not refused", () => {
  const { width, text } = explain(512, 12, 0);
  assert.equal(width, 42);
  assert.match(text, /42\.67 is no whole number/);
  assert.match(text, /8 \(d_k = 64\) and 16 \(d_k = 32\)/);
  assert.match(text, /12 · 42 = 504 wide, and W\^O maps them back to 512/);
});

test("a quotient is never rounded to a whole number", () => {
  const said = (d, h) => explain(d, h, 0).text.split(" is no")[0];
  assert.equal(said(512, 513), "512 / 513 = 0.998");
  assert.equal(said(513, 512), "513 / 512 = 1.002");
  assert.equal(said(1, 99_999), "1 / 99999 = 0.00001");
  assert.equal(said(99_998, 99_999), "99998 / 99999 = 0.99999");
  assert.equal(said(7, 3), "7 / 3 = 2.33");
});

test("what is no size is named, with its value", () => {
  const choose = "does not work: choose a whole number from 1 up, at most 99,999.";
  for (const x of ["0", "-3", "12.5", "100000", "1e300"]) {
    assert.equal(wrongSize(["512", x, ""]), `num_heads = ${x} ${choose}`);
    assert.equal(wrongSize([x, "12", ""]), `d_model = ${x} ${choose}`);
    assert.equal(wrongSize(["512", "12", x]), `d_k = ${x} ${choose}`);
  }
  assert.equal(wrongSize(["1", "99999", ""]), "");
  assert.equal(wrongSize(["", "12", "64"]), "");
});

test("a convention kept, and a width of one's own", () => {
  assert.match(explain(512, 8, 0).text, /512 \/ 8 = 64: the convention.*as wide as x/);
  assert.match(
    explain(512, 12, 64).text,
    /d_k = 64 is your choice.*12 · 64 = 768 wide/,
  );
  assert.equal(explain(7, 100, 0).width, 1);
});
