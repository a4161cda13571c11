import assert from "node:assert/strict";
import test from "node:test";
import { svg } from "../../mha_teach/widgets/static/kit.mjs";
import {
  drawing,
  rows,
  steps,
} from "../../mha_teach/widgets/static/one_query_draw.mjs";
import { finding, look } from "../../mha_teach/widgets/static/one_query_model.mjs";
import { close, golden } from "./golden.mjs";

for (const { plane: data, ...state } of golden.one_query) {
  const { x, y, temperature } = state;
  const where = `${data.labels.length} keys, query ${x}, ${y}, temperature ${temperature}`;

  test(`${where}: sentence, scores, weights and output as in Python`, () => {
    assert.equal(finding(data, state), state.sentence);
    const seen = look(data, state);
    close(seen.scores, state.scores);
    close(seen.weights, state.weights);
    close(seen.output, state.output);
  });

  test(`${where}: the saved drawing is the static figure`, () => {
    const { width, height, parts } = drawing(data, state);
    assert.equal(svg(width, height, parts), state.picture);
  });
}

const data = {
  labels: ["A", "<b>", "C"],
  keys: [
    [1, 0],
    [2, -0.5],
    [-3, 0],
  ],
};
data.values = data.keys;

const texts = (html) =>
  html.replaceAll(/<\/?(?:sup|b|li)>/g, " ").replaceAll(/ +/g, " ");

test("the steps follow the numbers from score to output", () => {
  const now = { x: 1, y: -0.4, temperature: 2 };
  const said = texts(steps(data, now, look(data, now)));
  assert.match(said, /For &lt;b&gt;: 1\.0 × 2\.00 \+ \(−0\.4\) × \(−0\.50\) = 2\.20\./);
  assert.match(said, /Divide by the temperature, 2: 1\.10\./);
  assert.match(said, /&lt;b&gt; is 0\.60 ahead of A: it gets e 0\.60 = 1\.82 times/);
  assert.match(said, /0\.34 × A \+ 0\.62 × &lt;b&gt; \+ 0\.05 × C = \(1\.43, −0\.31\)/);
});

test("a large lead is not computed, and what gets nothing is left out of the sum", () => {
  const now = { x: 3, y: 0, temperature: 0.1 };
  const said = texts(steps(data, now, look(data, now)));
  assert.match(said, /more than 1,000 times the weight/);
  assert.match(said, /1\.00 × &lt;b&gt; \+ … = \(2\.00, −0\.50\)/);
});

test("rows mark who gets the most and who is nearest, and hold no markup", () => {
  const now = { x: 1, y: 0, temperature: 1 };
  const html = rows(data, look(data, now));
  assert.equal(
    html.match(/<tr class="most"><th scope="row">&lt;b&gt;<\/th>/g).length,
    1,
  );
  assert.match(html, /<td class="near">0\.00<\/td>/);
  assert.doesNotMatch(html, /<b>/);
});
