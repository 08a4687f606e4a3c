// Which batch sizes are asked about. Started by `cargo xtask test-web`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { imported } from "./program.mjs";

const { Batches } = await imported("estimate/batches.ts");

/** Asks until nothing is left, from a size that is known at first. */
function searched(first, largest) {
  const batches = new Batches();
  const asked = [];
  const ask = (batch) => batches.add(batch, { batch, fits: batch <= largest, decision: "", device_bytes: batch, range: { low: batch, high: batch } });
  ask(first);
  for (let next = batches.next(); next !== null; next = batches.next()) {
    assert.ok(!asked.includes(next) && next !== first, `${next} was asked about before`);
    asked.push(next);
    ask(next);
  }
  return { batches, asked };
}

test("the largest size that fits is found from every size", () => {
  for (const largest of [1, 2, 3, 7, 100, 1000, 4097]) {
    for (const first of [1, 2, 5, 64, 5000]) {
      const { batches, asked } = searched(first, largest);
      assert.equal(batches.largest(), largest, `from ${first}`);
      assert.ok(batches.isProven());
      assert.ok(asked.length <= 2 * Math.ceil(Math.log2(Math.max(largest, first))) + 3, `${asked}`);
    }
  }
});

test("a search ends where not even one fits, and where all do", () => {
  assert.deepEqual(searched(8, 0).asked, [1]);
  const { batches } = searched(8, Infinity);
  assert.equal(batches.largest(), 65536);
  assert.ok(!batches.isProven());
});

test("a size that cannot be estimated counts as one that does not fit", () => {
  const batches = new Batches();
  batches.add(1, { batch: 1, fits: true, decision: "fits", device_bytes: 1, range: { low: 1, high: 1 } });
  batches.add(2, null);
  assert.equal(batches.next(), null);
  assert.equal(batches.largest(), 1);
  assert.equal(batches.all().length, 1);
});
