// The editor of mapping files in a browser: findings and names while a person types, by keyboard alone, without a script, and saved.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { AXE, READ, World, eventually } from "./world.mjs";

const FILE = "contacts.map.yaml";
const SAME = "    same: [id, name, email, mobile, phone]";
let world;
let line;
before(async () => {
  world = await World.open({ writable: true });
  line = readFileSync(join(world.pack, FILE), "utf8").split("\n").indexOf(SAME) + 1;
});
after(() => world?.close());

const at = (file, number) => `/editor?file=${file}&line=${number}`;
const served = () => world.api("/api/playground/files").then((files) => files[FILE]);
const status = (page) => page.locator("#editor-status").innerText();
/** Whether the focus is inside the editor. */
const isInside = (page) => page.evaluate(() => document.activeElement.classList.contains("mapping-editor"));

test("findings and names appear at their place, and the keyboard leaves the editor", async () => {
  for (const scheme of ["light", "dark"]) {
    const page = await world.visitor({ scheme });
    await page.goto(at(FILE, line));
    assert.equal((await page.locator(".cm-activeLine").innerText()).trim(), SAME.trim());
    assert.equal(await page.locator(".cm-lineNumbers .cm-activeLineGutter").innerText(), String(line));
    assert.ok(await isInside(page), "the editor has the focus at the opened line");
    await eventually("the served pack compiles", async () => (await status(page)) === "The pack compiles.");

    // A word that no contract has: a finding at its place.
    await page.keyboard.press("End");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.type(", nam");
    await page.keyboard.press("Escape");
    await eventually("the finding is at its place", async () => (await page.locator(".cm-lintRange-error").allInnerTexts()).includes("nam"));
    assert.match(await status(page), /^\d+ errors?/);
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    assert.deepEqual(violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target)}`), [], scheme);

    // The names that are possible there; one is taken.
    for (let number = 0; number < 3; number += 1) await page.keyboard.press("Backspace");
    await page.keyboard.type("birth");
    await page.keyboard.press("Control+Space");
    const names = page.locator(".cm-tooltip-autocomplete li");
    // A list that has just appeared does not take the key that the user was about to type.
    let looks = 0;
    await eventually("the names are listed", async () => (await names.count()) > 0 && (looks += 1) > 3);
    assert.ok((await names.allInnerTexts()).some((name) => name.startsWith("birthday")), String(await names.allInnerTexts()));
    await page.keyboard.press("Enter");
    assert.equal((await page.locator(".cm-activeLine").innerText()).trim(), SAME.trim().replace("]", ", birthday]"));

    await page.keyboard.press("Tab");
    assert.ok(!(await isInside(page)), "Tab leaves the editor");
    await page.keyboard.press("Shift+Tab");
    assert.ok(await isInside(page));
    await page.keyboard.press("Shift+Tab");
    assert.ok(!(await isInside(page)), "and so does Shift-Tab");
    assert.deepEqual(page.troubles, []);
    await page.context().close();
  }
});

test("without a script it is a text area, and findings follow the form", async () => {
  const page = await world.visitor({ script: false });
  await page.goto(at(FILE, line));
  assert.equal((await page.locator(".mapping-lines .marked code").innerText()).trim(), SAME.trim());
  const area = page.locator("#editor-text");
  const text = await area.inputValue();
  assert.equal(text, await served());
  await area.fill(text.replace("same: [id, name,", "same: [id, nane,"));
  await page.getByRole("button", { name: /^Compare/ }).click();
  assert.match(await page.locator("#fault").innerText(), new RegExp(`does not compile[\\s\\S]*${FILE}:${line}`));
  assert.ok((await area.inputValue()).includes("nane"), "what was typed stays");
  await page.context().close();
});

test("a text moves from file to file, and is saved by an operator alone", async () => {
  const reader = await world.visitor({ token: READ });
  await reader.goto(at(FILE, 1));
  assert.equal(await reader.locator("main button").count(), 0);
  await reader.context().close();

  const page = await world.visitor();
  await page.goto(at(FILE, line));
  await page.keyboard.press("Control+End");
  await page.keyboard.type("# written in the studio");
  await page.locator("select[name=open]").selectOption("pack.yaml");
  await page.waitForFunction(() => document.querySelector("#editor-title")?.textContent === "pack.yaml");
  await page.locator("select[name=open]").selectOption(FILE);
  await page.waitForFunction((file) => document.querySelector("#editor-title")?.textContent === file, FILE);
  assert.ok((await page.locator("#editor-text").inputValue()).endsWith("# written in the studio"));
  await page.getByRole("button", { name: "Save to the pack" }).click();
  await page.waitForURL("**/pack?show=reload");
  assert.ok(readFileSync(join(world.pack, FILE), "utf8").endsWith("# written in the studio"));
  await page.getByRole("button", { name: "Reload" }).click();
  await eventually("it serves", async () => (await served()).endsWith("# written in the studio"));
  await page.goto("/history");
  assert.match(await page.locator("main").innerText(), /mapping saved/i);
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});
