import assert from "node:assert/strict";
import test from "node:test";
import * as formulas from "../../mha_teach/widgets/static/formulas.mjs";
import { close, golden } from "./golden.mjs";

test("one query attends as in the package", () => {
  const { q, k, v, weights, output } = golden.formulas.attend;
  const got = formulas.attend(q, k, v);
  close(got.weights, weights);
  close(got.output, output);
});

test("softmax survives large scores", () => {
  close(formulas.softmax([1000, 1000, -1000]), [0.5, 0.5, 0]);
});

test("costs are those of mha_teach.costs, to the last parameter", () => {
  for (const c of golden.formulas.costs) {
    const widths = { dK: c.d_k, dV: c.d_v, bias: c.bias };
    assert.equal(formulas.parameters(c.d_model, c.num_heads, widths), c.parameters);
    assert.equal(formulas.forwardFlops(c.d_model, c.num_heads, c.n, widths), c.flops);
    assert.equal(formulas.scoreBytes(c.num_heads, c.n), c.bytes);
  }
});

test("the nearest numbers of heads divide d_model", () => {
  assert.deepEqual(formulas.nearestHeads(512, 12), [8, 16]);
  assert.deepEqual(formulas.nearestHeads(512, 8), [8]);
  assert.deepEqual(formulas.nearestHeads(13, 5), [1, 13]);
  assert.deepEqual(formulas.nearestHeads(7, 100), [7]);
});
