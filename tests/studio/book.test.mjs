// The documentation site in a browser: the mapping of the first page can be edited there, by the compiler and the engine as
// WebAssembly. `BOOK` is the folder that `docs/build` makes; without its module, the test is skipped.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { test } from "node:test";
import { launch } from "./world.mjs";

const book = process.env.BOOK ?? "";
const skip = existsSync(join(book, "playground.wasm")) ? false : "docs/build made no module, or BOOK is not set";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };

/** The page "A first pair", wherever the book has it. */
const PAGES = ["first-pair.html", "manual/first-pair.html"];

test("a reader edits the mapping of the first page and sees what a request becomes", { skip }, async (t) => {
  const server = createServer((request, response) => {
    const file = join(book, normalize(new URL(request.url, "http://book").pathname));
    if (!existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" }).end(readFileSync(file));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = await launch();
  t.after(() => Promise.all([browser.close(), new Promise((resolve) => server.close(resolve))]));
  const page = await browser.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  const name = PAGES.find((name) => existsSync(join(book, name)));
  await page.goto(`http://127.0.0.1:${server.address().port}/${name}`);

  const result = page.locator("#try-it pre");
  const shows = async (...texts) => {
    for (const text of texts) await result.getByText(text).waitFor({ timeout: 10_000 });
  };
  await shows("call    GET /library/books/7", `answer  200 {"id":7,"name":"Tea","price":19.99}`);

  const mapping = page.getByLabel("books.map.yaml");
  const text = await mapping.inputValue();
  await mapping.fill(text.replace("scale: 100}", "scale: 1000}"));
  await shows(`answer  200 {"id":7,"name":"Tea","price":1.999}`);
  await mapping.fill(text.replace("name: title", "name: titel"));
  await shows("titel");
  assert.doesNotMatch(await result.innerText(), /^(call|answer)/m, "nothing runs while there are errors");

  await mapping.fill(text);
  await page.getByLabel("Request").selectOption({ index: 1 });
  await shows("call    GET /books/7", `answer  200 {"id":7,"title":"Tea","cents":50}`);
  await page.getByLabel("Reply of the service").fill(`{"id": 7, "name": "Tea", "price": 0.005}`);
  await shows("answer  502");
  assert.deepEqual(errors, []);
});
