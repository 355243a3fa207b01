// A store that is down: every page says so at once, says what it lacks and what works, and puts out of use what needs the
// store; it goes on by itself when the store is back. With a PostgreSQL that is stopped, frozen and started again.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Postgres, missing as skip } from "./postgres.mjs";
import { ARTEFACTS, AXE, OPERATE, World, eventually } from "./world.mjs";

// A page that waited for the store would take many seconds. How long pages took is told, and not held against a clock.
const BOUND = { waitUntil: "commit", timeout: 5_000 };
const operation = "/operations/v2/GET%20%2Fchats";
const PAGES = {
  overview: ["/", /Grants, evidence and transitions/],
  operations: ["/operations", /phases cannot be changed/],
  operation: [operation, /phases cannot be changed/],
  move: [`${operation}/move?phase=canary&share=0.25`, /phases cannot be changed/],
  requests: ["/requests", /requests of this replica are of now/],
  differences: ["/differences", /mapping files and the playground work/],
  difference: ["/differences/v2/GET%20%2Fchats", /mapping files and the playground work/],
  playground: ["/playground", /Nothing here is read from it/],
  clients: ["/clients", /clients, brownouts and sunsets cannot be changed/],
  client: ["/clients/acme", /clients, brownouts and sunsets cannot be changed/],
  pack: ["/pack", /a reload works/],
  history: ["/history", /cannot be downloaded/],
};

let postgres;
let world;
before(async () => {
  if (skip) return;
  postgres = new Postgres();
  await postgres.start();
  world = await World.open({ store: postgres.url });
  await world.traffic(3);
});
after(async () => {
  postgres?.thaw();
  await world?.close();
  await postgres?.close();
});

const isAway = () => eventually("the gateway knows that its store is away", async () => (await world.page("/")).includes('id="store-away"'));
const isBack = () => eventually("the gateway knows that its store is back", async () => !(await world.page("/clients")).includes('id="store-away"'));

test("a store that is stopped: every page says so at once, with what it lacks and what works", { skip }, async (context) => {
  const page = await world.visitor();
  await page.goto("/clients/acme");
  await page.locator("input[name=at]").fill("2031-01-01");
  await postgres.stop();
  // The page that is open learns of it, its controls go out of use, and what was typed stays.
  await page.locator("#store-away").waitFor();
  await eventually("the control is out of use", () => page.getByRole("button", { name: "Set the date" }).isDisabled());
  assert.equal(await page.locator("input[name=at]").inputValue(), "2031-01-01");
  const found = [];
  for (const [name, [path, said]] of Object.entries(PAGES)) {
    const begun = performance.now();
    const answer = await page.goto(path, BOUND);
    context.diagnostic(`${name}: ${Math.round(performance.now() - begun)} ms`);
    assert.equal(answer.status(), 200, path);
    const alert = await page.locator("#store-away").innerText();
    assert.match(alert, said, path);
    assert.match(alert, /Requests go on being served/);
    const open = await page.locator("main form[method=post] button:not([disabled])").evaluateAll((all) => all.filter((one) => !one.closest("fieldset[disabled]")).map((one) => one.textContent));
    assert.deepEqual(open.filter((words) => !/^(Reload|Run|Try|Record|Open|Edit)/.test(words)), [], `${path}: what needs the store is out of use`);
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    for (const one of violations) found.push(`${name}: ${one.id} ${one.nodes[0].target}`);
    await page.screenshot({ path: join(ARTEFACTS, `store-away-${name}.png`), fullPage: true });
  }
  assert.deepEqual(found, []);
  // What is served goes on.
  assert.equal((await world.call("/chats")).status, 200);
  // An auditor is not given half of what happened as if it were all.
  assert.equal((await page.request.get("/history/export.csv")).status(), 503);
  assert.deepEqual(page.troubles, []);
  await page.goto("/clients/acme");
  await postgres.start();
  await page.locator("#store-away").waitFor({ state: "detached" });
  await eventually("the control is back", () => page.getByRole("button", { name: "Set the date" }).isEnabled());
  await page.context().close();
});

test("a form that was sent while the store is away changes nothing, is kept, and does what it says when the store is back", { skip }, async () => {
  await isBack();
  const page = await world.visitor();
  await page.goto("/clients/brownouts/new?operation=GET%20%2Fchats&client=acme&minutes=10&reason=we+are+moving+house");
  // Sent in the moment before the page knows.
  await page.route("**/*", (route) => (route.request().headers()["x-studio-follow"] ? route.abort() : route.continue()));
  await postgres.stop();
  await isAway();
  await page.getByRole("button", { name: "Add the brownout" }).click();
  await page.getByRole("heading", { name: "Nothing was changed" }).waitFor();
  await page.getByText("Your input is preserved").waitFor();
  await page.screenshot({ path: join(ARTEFACTS, "store-away-kept.png"), fullPage: true });
  await postgres.start();
  await isBack();
  await page.getByRole("button", { name: "Submit again" }).click();
  await page.getByText("we are moving house").waitFor();
  assert.deepEqual((await world.api("/api/brownouts")).map((one) => one.reason), ["we are moving house"]);
  const [{ id }] = await world.api("/api/brownouts");
  await fetch(`${world.admin}/api/brownouts/${id}/remove`, { method: "POST", headers: { authorization: `Bearer ${OPERATE}`, "content-type": "application/json" }, body: "{}" });
  await page.context().close();
});

test("a store that neither answers nor refuses keeps no page waiting either", { skip }, async (context) => {
  await isBack();
  const page = await world.visitor();
  postgres.freeze();
  try {
    await isAway();
    for (const [path] of Object.values(PAGES)) {
      const begun = performance.now();
      await page.goto(path, BOUND);
      context.diagnostic(`${path}: ${Math.round(performance.now() - begun)} ms`);
      await page.locator("#store-away").waitFor();
    }
  } finally {
    postgres.thaw();
  }
  await isBack();
  await page.context().close();
});
