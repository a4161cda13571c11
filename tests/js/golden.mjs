import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const file = new URL("../golden/widgets.json", import.meta.url);
export const golden = JSON.parse(readFileSync(file, "utf8"));

/** Compares nested lists of numbers. */
export function close(actual, expected) {
  if (Array.isArray(expected)) {
    assert.equal(actual.length, expected.length);
    expected.forEach((x, i) => close(actual[i], x));
  } else {
    assert.ok(Math.abs(actual - expected) < 1e-8, `${actual} is not ${expected}`);
  }
}
