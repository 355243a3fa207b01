// Two operators at once: the second is told what the first has changed, and keeps what he wrote. And what is written in a
// session that has ended is kept, whichever form it is of.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ARTEFACTS, AXE, OPERATE, World, eventually } from "./world.mjs";

let world;
before(async () => {
  world = await World.open();
  await world.traffic(2);
});
after(() => world?.close());

/** Fills the form of a brownout; leaves it unsent. */
const describe = async (page, reason) => {
  await page.locator("#brownouts summary").click();
  await page.locator("#brownouts [name=operation]").selectOption("GET /chats");
  await page.locator("#brownouts [name=client]").selectOption("acme");
  await page.locator("#brownouts [name=reason]").fill(reason);
};
/** Sends it, and what is asked then. */
const set = async (page) => {
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByRole("button", { name: "Add the brownout" }).click();
};
const both = () => Promise.all([world.visitor({ name: "Ada" }), world.visitor({ name: "Grace" })]);
const close = (...pages) => Promise.all(pages.map((page) => page.context().close()));
const post = (path, body = {}) => fetch(world.admin + path, { method: "POST", headers: { authorization: `Bearer ${OPERATE}`, "content-type": "application/json" }, body: JSON.stringify(body) });
const ends = async () => (await world.api("/api/sunsets")).find((one) => one.client === "acme")?.at ?? null;
/** The page that tells the second one; what it says of the first. */
const told = async (page, name) => {
  await page.getByRole("heading", { name: "Changed by another user" }).waitFor();
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  assert.deepEqual(violations.map((one) => `${one.id} ${one.nodes[0].target}`), []);
  await page.screenshot({ path: join(ARTEFACTS, `second-${name}.png`), fullPage: true });
  return page.locator("main [role=alert]").innerText();
};

test("sunsets: the second is told whose date stands, and may set his all the same", async () => {
  const [ada, grace] = await both();
  for (const page of [ada, grace]) await page.goto("/clients/acme");
  await grace.locator("input[name=at]").fill("2032-02-02");
  await ada.locator("input[name=at]").fill("2031-01-01");
  await ada.getByRole("button", { name: "Set the date" }).click();
  await eventually("Ada's date stands", async () => (await ends())?.startsWith("2031-01-01"));
  // Her page goes on following; what Grace has begun to write stays hers.
  await grace.locator("#sunset").waitFor();
  assert.equal(await grace.locator("input[name=at]").inputValue(), "2032-02-02");
  await grace.getByRole("button", { name: "Set the date" }).click();
  const said = await told(grace, "sunset");
  assert.match(said, /Your change was not applied.*Ada did this: sunset set, acme, v2 .*ends 2031-01-01T00:00:00Z, announced/s);
  assert.ok((await ends()).startsWith("2031-01-01"), "nothing was changed");
  assert.equal(await grace.locator("#kept [name=at]").inputValue(), "2032-02-02");
  await grace.getByRole("button", { name: "Submit again" }).click();
  await eventually("now it is Grace's", async () => (await ends())?.startsWith("2032-02-02"));
  // A form that nobody has touched follows: who begins from what he sees is no second.
  await eventually("Ada sees it in the field", async () => (await ada.locator("input[name=at]").inputValue()).startsWith("2032-02-02"));
  await ada.locator("input[name=at]").fill("2033-03-03");
  await ada.getByRole("button", { name: "Set the date" }).click();
  await eventually("it is Ada's again", async () => (await ends())?.startsWith("2033-03-03"));
  await ada.getByRole("button", { name: "Remove the sunset date" }).click();
  await eventually("there is no end", async () => (await ends()) === null);
  assert.deepEqual([...ada.troubles, ...grace.troubles], []);
  await close(ada, grace);
});

test("brownouts: the second is told of a window that came or went meanwhile", async () => {
  const [ada, grace] = await both();
  const reasons = async () => (await world.api("/api/brownouts")).map((one) => one.reason);
  for (const [page, reason] of [[ada, "of Ada"], [grace, "of Grace"]]) {
    await page.goto("/clients");
    await describe(page, reason);
  }
  await set(ada);
  await eventually("it is planned", async () => (await reasons()).length === 1);
  await set(grace);
  assert.match(await told(grace, "brownout"), /Ada did this: brownout set.*Planned or open now: 1 brownout/s);
  assert.deepEqual(await reasons(), ["of Ada"]);
  await grace.getByRole("button", { name: "Submit again" }).click();
  await eventually("both are there", async () => (await reasons()).length === 2);
  // Both take the same one out.
  for (const page of [ada, grace]) await page.goto("/clients");
  await grace.route("**/*", (route) => (route.request().headers()["x-studio-follow"] ? route.abort() : route.continue()));
  const remove = (page) => page.locator("#brownouts tbody tr", { hasText: "of Ada" }).getByRole("button", { name: "Remove" }).click();
  await remove(ada);
  await eventually("one is gone", async () => (await reasons()).length === 1);
  await remove(grace);
  assert.match(await told(grace, "brownout-removed"), /Ada did this: brownout removed/);
  const [{ id }] = await world.api("/api/brownouts");
  await post(`/api/brownouts/${id}/remove`);
  await close(ada, grace);
});

test("brownouts: who begins from what he sees is no second", async () => {
  const [ada, grace] = await both();
  const reasons = async () => (await world.api("/api/brownouts")).map((one) => one.reason);
  const plan = async (page, reason) => {
    await describe(page, reason);
    await set(page);
  };
  for (const page of [ada, grace]) await page.goto("/clients");
  await plan(ada, "of Ada");
  await grace.locator("#brownouts tbody tr", { hasText: "of Ada" }).waitFor();
  await plan(grace, "of Grace");
  await eventually("both are there", async () => (await reasons()).length === 2);
  for (const { id } of await world.api("/api/brownouts")) await post(`/api/brownouts/${id}/remove`);
  await close(ada, grace);
});

test("clients: a token that was just made is not ended by somebody who has not seen it", async () => {
  assert.equal((await post("/api/clients", { name: "beta" })).status, 201);
  const [ada, grace] = await both();
  for (const page of [ada, grace]) {
    await eventually("beta is there", async () => (await page.goto("/clients/beta")).status() === 200);
    await page.locator("summary", { hasText: "Rotate" }).click();
  }
  // The moment before Grace's page follows.
  await grace.route("**/*", (route) => (route.request().headers()["x-studio-follow"] ? route.abort() : route.continue()));
  await ada.getByRole("button", { name: "Rotate", exact: true }).click();
  await ada.locator("#token-text").waitFor();
  await grace.getByRole("button", { name: "Rotate", exact: true }).click();
  assert.match(await told(grace, "client"), /Ada did this: token rotated, beta/);
  const happened = await (await ada.request.get("/history/export.json?q=beta")).json();
  assert.equal(happened.filter((one) => one.kind === "token rotated").length, 1, "Ada's token is the last one");
  await post("/api/clients/beta/revoke");
  await close(ada, grace);
});

test("packs: a reload is not asked for by somebody who has not seen the last one", async () => {
  const [ada, grace] = await both();
  for (const page of [ada, grace]) await page.goto("/pack");
  await grace.route("**/*", (route) => (route.request().headers()["x-studio-follow"] ? route.abort() : route.continue()));
  await ada.getByRole("button", { name: "Reload", exact: true }).click();
  await eventually("it is reloaded", async () => (await world.api("/api/pack")).last_reload);
  await grace.getByRole("button", { name: "Reload", exact: true }).click();
  assert.match(await told(grace, "pack"), /Ada did this: reload asked for, messaging/);
  await grace.getByRole("button", { name: "Submit again" }).click();
  await grace.locator("#reload").waitFor();
  await close(ada, grace);
});

const operation = "/operations/v2/GET%20%2Fchats";
// Every form with something to write in it: where it is, how it is opened, the field, its button.
const FORMS = {
  move: [`${operation}/move?phase=shadow`, null, "[name=reason]", "Change phase"],
  hold: [operation, null, "#hold-reason", "Hold"],
  sunset: ["/clients/acme", null, "[name=at]", "Set the date", "2031-01-01"],
  brownout: ["/clients/brownouts/new?operation=*&client=*&minutes=10", null, "#confirm", "Add the brownout", "everything"],
  "playground request": ["/playground", null, "main textarea[name=body]", null],
};

test("a session that has ended loses nothing of any form", async () => {
  for (const [name, [path, opener, field, button, text = `typed into <${name}>\nand more`]] of Object.entries(FORMS)) {
    const page = await world.visitor();
    await page.goto(path);
    if (opener) await page.locator(opener).click();
    const area = page.locator(field).first();
    const isLong = await area.evaluate((one) => one.nodeName === "TEXTAREA");
    const typed = isLong ? text : text.replace("\n", " ");
    await area.fill(typed);
    await page.context().clearCookies();
    if (button) await page.getByRole("button", { name: button, exact: true }).click();
    else await area.evaluate((one) => one.form.requestSubmit());
    await page.getByText("Your input is preserved").waitFor();
    await page.getByLabel("Token").fill("wrong-token");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Invalid token.").waitFor();
    await page.getByLabel("Token").fill(OPERATE);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "You are signed in again" }).waitFor();
    const values = await page.locator("form [name]").evaluateAll((all) => all.map((one) => one.value));
    assert.ok(values.map((value) => value.replaceAll("\r\n", "\n")).includes(typed), `${name}: ${JSON.stringify(values)}`);
    assert.deepEqual(page.troubles, []);
    await page.context().close();
  }
});

test("who signed in again beside the page sends what he wrote before", async () => {
  const page = await world.visitor();
  await page.goto("/clients/acme");
  await page.locator("input[name=at]").fill("2034-04-04");
  const beside = await page.context().newPage();
  await page.context().clearCookies();
  await beside.goto("/login");
  await beside.getByLabel("Token").fill(OPERATE);
  await beside.getByRole("button", { name: "Sign in" }).click();
  await beside.waitForURL("**/");
  await page.getByRole("button", { name: "Set the date" }).click();
  await page.getByText("This form belongs to another session").waitFor();
  assert.equal(await ends(), null, "nothing is done without being looked at");
  await page.getByRole("button", { name: "Submit again" }).click();
  await eventually("the date stands", async () => (await ends())?.startsWith("2034-04-04"));
  await page.context().close();
});
