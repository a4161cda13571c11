import assert from "node:assert/strict";
import test from "node:test";
import {
  canHide,
  drawing,
  finding,
  open,
  ranking,
  rowsOf,
} from "../../mha_teach/widgets/static/attention_map_model.mjs";
import { svg } from "../../mha_teach/widgets/static/kit.mjs";
import { close, golden } from "./golden.mjs";

golden.attention_map.forEach((expected, i) => {
  const map = open(expected.map);
  const state = {
    layer: expected.layer,
    head: expected.head,
    query: expected.selected_query,
    hide: expected.hide_special,
  };

  test(`map ${i}: sentence and weights as in Python`, () => {
    assert.equal(finding(map, state), expected.sentence);
    const { rows, left } = rowsOf(map, state);
    close(rows, expected.rows);
    close(left, expected.left);
  });

  test(`map ${i}: the saved drawing is the static figure`, () => {
    const { width, height, parts } = drawing(map, state);
    assert.equal(svg(width, height, parts), expected.picture);
  });
});

test("the ranking falls, and carries the mean over the heads", () => {
  const map = open(golden.attention_map[0].map);
  const state = { layer: 1, head: 0, query: 2, hide: false };
  const ranked = ranking(map, state);
  const weights = ranked.map(({ weight }) => weight);
  assert.deepEqual(
    weights,
    weights.toSorted((a, b) => b - a),
  );
  const [{ key, mean }] = ranked;
  const both = [0, 1].map((head) => rowsOf(map, state, head).rows[2][key]);
  close(mean, (both[0] + both[1]) / 2);
});

test("special tokens can be hidden where there are some, and others too", () => {
  const hides = (tokens, special) =>
    canHide({ tokens, key_tokens: ["a", "b"], special });
  assert.equal(hides(["[CLS]", "a"], ["[CLS]"]), true);
  assert.equal(hides(["[CLS]", "a"], ["[SEP]"]), false);
  assert.equal(hides(["[CLS]"], ["[CLS]"]), false);
});
