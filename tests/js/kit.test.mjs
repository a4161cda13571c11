import assert from "node:assert/strict";
import test from "node:test";
import {
  escape,
  halves,
  inkOn,
  listed,
  number,
  numeral,
  percent,
  ramp,
  reshape,
  words,
  wrap,
} from "../../mha_teach/widgets/static/kit.mjs";
import { golden } from "./golden.mjs";

const { halves: packed, numbers, percents, ramp: colours, words: texts } = golden.kit;

test("halves reads what NumPy wrote, subnormal numbers too", () => {
  assert.deepEqual(
    halves(packed.text).map((x) => x + 0),
    packed.values.map((x) => x + 0),
  );
});

test("numbers and shares are written as in Python", () => {
  for (const [x, two, three] of numbers) {
    assert.equal(number(x), two);
    assert.equal(number(x, 3), three);
    assert.equal(numeral(x, 3), three.replace("−", "-"));
  }
  for (const [x, share] of percents) assert.equal(percent(x), share);
});

test("a picture holds what XML may hold, as in Python", () => {
  for (const [code, text] of texts) {
    assert.equal(words(3, 5, `a${String.fromCodePoint(code)}b`), text);
  }
});

test("the ramp and its ink are those of the static figure", () => {
  for (const [weight, rgb, ink] of colours) {
    assert.deepEqual(ramp(weight, false), rgb);
    assert.equal(inkOn(rgb), ink);
  }
});

test("more weight is always further from the paper, in both themes", () => {
  const brightness = (rgb) => 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
  for (const dark of [false, true]) {
    const steps = Array.from({ length: 101 }, (_, i) =>
      brightness(ramp(i / 100, dark)),
    );
    const rises = steps.slice(1).map((b, i) => b - steps[i]);
    assert.ok(rises.every((rise) => (dark ? rise > 0 : rise < 0)));
  }
});

test("the ink on every shade has a contrast of at least 4.5 to 1", () => {
  const linear = (c) =>
    c / 255 <= 0.04045 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) =>
    0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const hex = (text) => [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
  for (const dark of [false, true]) {
    for (let i = 0; i <= 100; i += 1) {
      const rgb = ramp(i / 100, dark);
      const [low, high] = [luminance(rgb), luminance(hex(inkOn(rgb)))].sort(
        (a, b) => a - b,
      );
      assert.ok((high + 0.05) / (low + 0.05) >= 4.5, `weight ${i / 100}, dark ${dark}`);
    }
  }
});

test("reshape nests, wrap breaks at words, escape leaves no markup", () => {
  assert.deepEqual(reshape([1, 2, 3, 4, 5, 6], 3), [
    [1, 2, 3],
    [4, 5, 6],
  ]);
  assert.deepEqual(reshape([1, 2, 3, 4], 1, 2), [[[1, 2]], [[3, 4]]]);
  assert.deepEqual(wrap("one two three", 7), ["one two", "three"]);
  assert.equal(escape(`<b> & "x's"`), "&lt;b&gt; &amp; &quot;x&#x27;s&quot;");
});

test("the last of several stands behind the word for and", () => {
  const and = (most, last) => `${most} and ${last}`;
  const lists = [["a"], ["a", "b"], ["a", "b", "c"]].map((all) => listed(all, and));
  assert.deepEqual(lists, ["a", "a and b", "a, b and c"]);
});
