// The pages of recent requests in a browser: list, filters, and the waterfall of one request.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ARTEFACTS, AXE, World, eventually } from "./world.mjs";

let world;
before(async () => {
  world = await World.open();
  await world.traffic(3);
});
after(async () => {
  await world?.close();
});

const violations = async (page) => {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations.map((one) => `${one.id} ${one.nodes[0].target} ${one.nodes[0].failureSummary}`);
};

test("requests are listed live, filtered, and opened by keyboard as a waterfall", async () => {
  const page = await world.visitor();
  await page.goto("/requests");
  await page.locator("#requests tbody tr").first().waitFor();
  assert.match(await page.locator("#sample").innerText(), /Sample: \d+ of \d+ requests of the last 15 min/);
  assert.equal(await page.locator("nav [aria-current=page]").innerText(), "Requests");
  assert.deepEqual(await violations(page), []);
  await page.screenshot({ path: join(ARTEFACTS, "requests.png"), fullPage: true });

  // A new request appears without a reload.
  const before = await page.locator("#requests tbody tr").count();
  await (await world.call("/chats/7")).arrayBuffer();
  await eventually("the list follows", async () => (await page.locator("#requests tbody tr").count()) > before);

  // Filters, by keyboard.
  await page.locator("#status").focus();
  await page.keyboard.type("404");
  await page.keyboard.press("Enter");
  await page.waitForURL(/status=404/);
  const statuses = await page.locator("#requests tbody tr td:nth-child(5)").allInnerTexts();
  assert.ok(statuses.length > 0 && statuses.every((status) => status === "404"), String(statuses));
  await page.locator("#status").fill("many");
  await page.keyboard.press("Enter");
  await page.getByText("Invalid filter").waitFor();
  await page.goto("/requests?operation=GET%20%2Fchats%2F%7Bid%7D&status=2xx");

  // One request, by keyboard.
  await page.locator("#requests tbody a").first().focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/requests\/[0-9a-f]{16}$/);
  const parts = await page.locator("#waterfall tbody tr").allInnerTexts();
  assert.match(parts[0], /^Request/);
  assert.ok(parts.some((part) => /^v3 GET/.test(part)), String(parts));
  const bars = await page.locator("#waterfall svg.course rect:not(.track)").evaluateAll((bars) => bars.map((bar) => [bar.getBoundingClientRect().width, getComputedStyle(bar).fill]));
  assert.equal(bars.length, parts.length);
  assert.ok(bars.every(([width, fill]) => width > 0 && fill !== "none"), JSON.stringify(bars));
  assert.ok((await page.locator("#messages .sides pre").count()) >= 4, "header fields and bodies of both sides");
  const place = page.locator("#facts a.place");
  assert.match(await place.getAttribute("href"), /^\/pack\?show=files&file=.*&line=\d+#L\d+$/);
  assert.deepEqual(await violations(page), []);
  await page.screenshot({ path: join(ARTEFACTS, "request.png"), fullPage: true });
  await place.click();
  await page.locator(".numbered .line[aria-current]").waitFor();
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test("both pages are whole on a phone in the dark, and without a script", async () => {
  const phone = await world.visitor({ phone: true, scheme: "dark" });
  const [{ id }] = (await world.api("/api/requests")).samples;
  for (const path of ["/requests", `/requests/${id}`]) {
    await phone.goto(path);
    const overflow = await phone.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(overflow, 0, path);
    assert.deepEqual(await violations(phone), [], path);
    await phone.screenshot({ path: join(ARTEFACTS, `request${path === "/requests" ? "s" : ""}-dark-phone.png`), fullPage: true });
  }
  assert.deepEqual(phone.troubles, []);
  await phone.context().close();

  const plain = await world.visitor({ script: false });
  await plain.goto("/requests");
  await plain.locator("#requests tbody a").first().click();
  assert.equal(await plain.locator("#waterfall h2").innerText(), "Waterfall");
  await plain.goto("/requests/0123456789abcdef");
  assert.equal(await plain.locator("h1").innerText(), "No such request");
  await plain.context().close();
});
