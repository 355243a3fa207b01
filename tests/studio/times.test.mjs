// Relative times of the script, by the table that those of the pages are held against too (src/studio/words.rs).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { runInNewContext } from "node:vm";

const NOW = 1767225600000;

/** The texts that the script gives times of these ages, in a document that has them and nothing else. */
const written = (ages) => {
  const times = ages.map((age) => ({ dataset: { ms: String(NOW - age) }, textContent: "" }));
  const document = {
    getElementById: () => null,
    addEventListener: () => {},
    querySelectorAll: (selector) => (selector === "time[data-ms]" ? times : []),
    querySelector: () => null,
    createElement: () => ({ setAttribute: () => {} }),
    body: { dataset: {}, hasAttribute: () => false, append: () => {} },
    documentElement: { dataset: {} },
  };
  const ticks = [];
  class Clock extends Date {
    static now() {
      return NOW;
    }
  }
  const ignored = () => 0;
  const window = { addEventListener: () => {} };
  const sessionStorage = { getItem: () => null, removeItem: () => {} };
  const globals = { document, window, sessionStorage, Date: Clock, setInterval: (tick) => ticks.push(tick), setTimeout: ignored, clearTimeout: ignored, addEventListener: () => {}, location: { href: "" }, navigator: {} };
  runInNewContext(readFileSync("src/studio/assets/studio.js", "utf8"), globals);
  ticks.forEach((tick) => tick());
  return times.map((time) => time.textContent);
};

test("a relative time of the script is the same as that of the page", () => {
  const table = JSON.parse(readFileSync("tests/studio/times.json", "utf8"));
  assert.deepEqual(written(table.map(([age]) => age)), table.map(([, words]) => words));
});
