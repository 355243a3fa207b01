// Rollouts on the page of an operation in each of their states, and recorded packs with a restoration, in a browser.

import assert from "node:assert/strict";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ARTEFACTS, READ, World, eventually, faultsOf } from "./world.mjs";

const OPERATION = "GET /contacts";
const HERE = `/operations/v2/${encodeURIComponent(OPERATION)}`;
const PLANS = `rollout:
  careful: { steps: [{ phase: shadow, for: 1h }, { phase: canary, share: 5%, for: 1d }, { phase: canary, share: 50% }, translated], when: { between: '09:00-09:01', days: mon, zone: Europe/Berlin } }
  quick: { steps: [{ phase: shadow, for: 0s }, translated] }
`;
let world, page;
before(async () => {
  world = await World.open({ more: PLANS });
  await world.traffic(3);
  page = await world.visitor();
});
after(() => world?.close());

/** Checks a page in all colours and widths. */
const inspect = async (name, path, selector) => {
  const found = [];
  for (const scheme of ["light", "dark"]) {
    for (const phone of [false, true]) {
      const visitor = await world.visitor({ scheme, phone });
      await visitor.goto(path);
      await visitor.locator(selector).waitFor();
      const label = `${name}-${scheme}${phone ? "-phone" : ""}`;
      for (const fault of await faultsOf(visitor)) found.push(`${label}: ${fault}`);
      found.push(...visitor.troubles);
      await visitor.locator(selector).screenshot({ path: join(ARTEFACTS, `${label}.png`) });
      await visitor.context().close();
    }
  }
  assert.deepEqual(found, []);
};
const panel = () => page.locator("#rollout").innerText();
const press = async (name) => {
  await page.getByRole("button", { name, exact: true }).click();
  await page.locator("#done").waitFor();
};

test("a rollout is started after a review, and waits for time, evidence and the time of day", async () => {
  await page.goto(HERE);
  assert.doesNotMatch(await panel(), /Pause|running/);
  await inspect("rollout-none", HERE, "#rollout");
  await page.locator("#plan").selectOption("careful");
  await page.getByRole("button", { name: "Review rollout…" }).click();
  await page.getByRole("heading", { name: "Start this rollout?" }).waitFor();
  await inspect("rollout-review", `${HERE}/start?plan=careful`, "main");
  await page.locator("#reason").fill("it is time");
  await press("Start rollout");
  assert.equal((await world.phase(OPERATION)).phase, "shadow");
  const text = await panel();
  for (const part of [/running by Ada .*: it is time/, /time: (1 h|59 min) left/, /evidence: too few comparisons/, /time of day: opens in /, /shadow for at least 1 h current/]) assert.match(text, part);
  await inspect("rollout-waiting", HERE, "#rollout");
});

test("a rollout is paused, needs attention, is resumed and promoted", async () => {
  await page.goto(HERE);
  await page.locator("#rollout-reason").fill("a holiday");
  await press("Pause");
  assert.match(await panel(), /paused by Ada .*: a holiday/);
  await inspect("rollout-paused", HERE, "#rollout");
  await page.goto("/");
  const item = page.locator(".todo li", { hasText: "has a paused rollout" });
  await item.getByRole("link", { name: "Look at it" }).click();
  await press("Resume");
  await press("Promote to the next step");
  assert.deepEqual([(await world.phase(OPERATION)).phase, (await world.phase(OPERATION)).share], ["canary", 0.05]);
  await page.goto("/");
  assert.equal(await item.count(), 0);
});

test("a rollout is aborted, and the operation returns to its phase", async () => {
  await page.goto(HERE);
  await page.locator("#rollout-reason").fill("wrong week");
  await page.getByLabel("With Abort").check();
  await press("Abort");
  assert.equal((await world.phase(OPERATION)).phase, "legacy");
  assert.match(await panel(), /aborted by Ada .*: wrong week/);
  await inspect("rollout-aborted", HERE, "#rollout");
});

test("a rollout is completed by its last promotion", async () => {
  await page.goto(`${HERE}/start?plan=quick`);
  await press("Start rollout");
  await press("Promote to the next step");
  // The plan's last step has no time of its own: the gate completes the rollout at its next check.
  await eventually("it is completed", async () => /completed/.test(await panel()));
  await inspect("rollout-completed", HERE, "#rollout");
});

test("who may only look sees a rollout and no controls", async () => {
  const reader = await world.visitor({ token: READ });
  await reader.goto(HERE);
  assert.match(await reader.locator("#rollout").innerText(), /completed/);
  assert.equal(await reader.locator("#rollout form").count(), 0);
  await reader.goto("/pack?show=recorded");
  assert.equal(await reader.locator("#recorded form").count(), 0);
  await reader.context().close();
});

test("a recorded pack is restored with one confirmation and ended by a reload", async () => {
  const served = () => world.api("/api/pack");
  const first = (await served()).hash;
  appendFileSync(join(world.pack, "pack.yaml"), "\n# another pack\n");
  await page.goto("/pack");
  await page.getByRole("button", { name: "Reload", exact: true }).click();
  await page.locator("#reload [role=status]").getByText("reloaded").waitFor();
  assert.notEqual((await served()).hash, first);
  await page.goto("/pack?show=recorded");
  assert.equal(await page.locator("#recorded tbody tr").count(), 2);
  await inspect("packs", "/pack?show=recorded", "main");
  await page.locator("#recorded summary", { hasText: "Restore" }).click();
  await page.getByRole("button", { name: "Restore this pack" }).click();
  await page.locator("#restored").waitFor();
  assert.equal((await served()).hash, first);
  assert.equal(await page.evaluate(() => document.activeElement.id), "restored");
  await inspect("packs-restored", "/pack?show=recorded", "main");
  await page.getByRole("button", { name: "Reload", exact: true }).click();
  await eventually("the pack on disk serves", async () => (await served()).hash !== first);
  await page.locator("#restored").waitFor({ state: "detached" });
  assert.deepEqual(page.troubles, []);
});
