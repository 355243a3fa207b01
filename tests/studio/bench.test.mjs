// The bench of the studio's cost, for a moment: that it measures at all.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";

test("what the studio costs can be measured", async () => {
  const { stdout } = await promisify(execFile)("benches/studio/run", ["--tiny", "--seconds", "2"]);
  assert.match(stdout, /\| closed \| [1-9]\d* \|/);
  assert.match(stdout, /\| open \| [1-9]\d* \|/);
  assert.match(stdout, /[1-9]\d* looks/);
  assert.match(stdout, /The live view costs -?[\d.]+ % of a core/);
});

test("the load times of pages can be measured", async () => {
  const { stdout } = await promisify(execFile)("benches/studio/pages", ["--operations", "3", "--clients", "3", "--calls", "9"]);
  assert.match(stdout, /9 calls: \{"200":9\}/);
  assert.match(stdout, /\| `\/operations` \| \d+ \| \d+ \| \d+ \| \d+ \|/);
});
