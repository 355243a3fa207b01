// Several gateways on one PostgreSQL: pages show the numbers of all, and who went away, with since when.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Postgres, missing as skip } from "./postgres.mjs";
import { ARTEFACTS, AXE, World, eventually } from "./world.mjs";

let postgres;
let world;
before(async () => {
  if (skip) return;
  postgres = new Postgres();
  await postgres.start();
  world = await World.open({ store: postgres.url });
});
after(async () => {
  await world?.close();
  await postgres?.close();
});

test("two replicas: the numbers are of both, one that is killed is named with since when, and one that is stopped took leave", { skip }, async () => {
  const other = await world.another();
  const third = await world.another();
  const page = await world.visitor();
  const row = (child) => page.locator("#replicas tbody tr", { hasText: `process ${child.pid}` });
  await eventually("all three are there", async () => {
    await page.goto("/");
    return (await page.locator("#replicas tbody tr").count()) === 3;
  });
  assert.match(await row(world.gateway).innerText(), /this one/);
  await row(other.child).getByText("there", { exact: true }).waitFor();

  // Calls that only the other one answers show here: at once in its row, and then in the sums.
  const call = () => fetch(`${other.clients}/v2/contacts`, { headers: { "X-Authorization": `Bearer ${world.token}` } }).then((answer) => answer.arrayBuffer());
  let calls = 0;
  await eventually("the other's rate shows", async () => {
    for (let n = 0; n < 5; n++, calls++) await call();
    const [, rate] = /([\d.]+)\/s/.exec(await row(other.child).innerText()) ?? [];
    return Number(rate) > 0;
  });
  const busy = page.locator("#busiest tr", { hasText: "/contacts" });
  await eventually("they are in the sums", async () => (await busy.count()) === 1);
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  assert.deepEqual(violations.map((one) => `${one.id} ${one.nodes[0].target}`), []);
  third.child.kill("SIGTERM");
  // To the last call, once the slot is over.
  await eventually("all of them", async () => Number((await busy.locator("td").nth(1).innerText()).replace(/\D/g, "")) === calls);
  await page.goto("/operations?q=contacts");
  assert.match(await page.locator("#operations tbody tr").first().innerText(), new RegExp(`\\b${calls}\\b`));
  await page.goto("/");

  // One is stopped as it should be, the other one is killed.
  await row(third.child).getByText("left", { exact: true }).waitFor();
  other.child.kill("SIGKILL");
  const gone = page.locator("#attention li", { hasText: `process ${other.child.pid}` });
  await gone.getByText("stopped without leaving").waitFor();
  assert.match(await gone.innerText(), /last message came (\d+ s|\d+ min) ago/);
  await row(other.child).getByText("away", { exact: true }).waitFor();
  assert.equal(await page.locator("#attention li", { hasText: `process ${third.child.pid}` }).count(), 0, "who took leave needs nobody");
  await page.screenshot({ path: join(ARTEFACTS, "replicas.png"), fullPage: true });
  // What it counted has happened all the same.
  assert.equal(Number((await busy.locator("td").nth(1).innerText()).replace(/\D/g, "")), calls);

  const phone = await world.visitor({ phone: true, scheme: "dark" });
  await phone.goto("/");
  const overflow = await phone.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(overflow, 0);
  await phone.screenshot({ path: join(ARTEFACTS, "replicas-dark-phone.png"), fullPage: true });
  assert.deepEqual(page.troubles, []);
});
