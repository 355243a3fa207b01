// Every page of the studio in a browser, with live traffic; each control with its effect on the data path.

import assert from "node:assert/strict";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ARTEFACTS, AXE, HOSTILE, READ, World, eventually, faultsOf } from "./world.mjs";

let world;
let traffic;
before(async () => {
  world = await World.open();
  await world.traffic(20);
  traffic = setInterval(() => world.traffic(1).catch(() => {}), 300);
});
after(async () => {
  clearInterval(traffic);
  await world?.close();
});

const OPERATION = "GET /chats";
const at = (operation) => `/operations/v2/${encodeURIComponent(operation)}`;
const PAGES = {
  overview: "/",
  "overview-day": "/?span=day",
  operations: "/operations",
  operation: at(OPERATION),
  move: `${at(OPERATION)}/move?phase=canary&share=0.25&reason=looks+good`,
  requests: "/requests",
  differences: "/differences",
  playground: "/playground",
  editor: "/editor?file=contacts.map.yaml&line=48",
  difference: `/differences/v2/${encodeURIComponent(OPERATION)}`,
  clients: "/clients",
  client: "/clients/acme",
  brownout: "/clients/brownouts/new?operation=*&client=*&minutes=10&from=",
  pack: "/pack",
  shapes: "/pack?show=shapes",
  decisions: "/pack?show=decisions",
  settings: "/pack?show=settings",
  contract: "/pack?show=contract&side=v3",
  files: "/pack?show=files&file=chats.map.yaml&line=12",
  changes: "/pack?show=changes",
  reload: "/pack?show=reload",
  recorded: "/pack?show=recorded",
  history: "/history",
  nothing: "/nothing-here",
};

test("every page is whole, reachable and without a violation, light and dark, wide and on a phone", async () => {
  const found = [];
  for (const scheme of ["light", "dark"]) {
    for (const phone of [false, true]) {
      const page = await world.visitor({ scheme, phone });
      for (const [name, path] of Object.entries(PAGES)) {
        await page.goto(path);
        for (const fault of await faultsOf(page)) found.push(`${name} ${scheme}${phone ? " phone" : ""}: ${fault}`);
        assert.equal(await page.locator("h1").count(), 1, `${name} has one headline`);
        await page.screenshot({ path: join(ARTEFACTS, `${name}-${scheme}${phone ? "-phone" : ""}.png`), fullPage: true });
      }
      assert.deepEqual(page.troubles, []);
      await page.context().close();
    }
  }
  assert.deepEqual(found, []);
});

test("the page of signing in is without a violation too", async () => {
  for (const scheme of ["light", "dark"]) {
    const page = await world.visitor({ token: null, scheme });
    await page.goto("/operations");
    assert.match(page.url(), /\/login\?to=%2Foperations/);
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => window.axe.run());
    assert.deepEqual(violations.map((one) => one.id), []);
    await page.screenshot({ path: join(ARTEFACTS, `login-${scheme}.png`) });
    await page.getByLabel("Token").fill("wrong-token");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Invalid token.").waitFor();
    await page.context().close();
  }
});

test("an operation is moved with a reason, answers otherwise from then on, and is moved back", async () => {
  const page = await world.visitor();
  await page.goto(at("GET /contacts"));
  assert.equal((await world.phase("GET /contacts")).phase, "legacy");
  await page.locator("#phase").selectOption("translated");
  await page.locator("#share").fill("5%");
  await page.locator("#reason").fill("both sides agree");
  await page.getByRole("button", { name: "Review…" }).click();
  await page.getByText("All clients receive translated answers of the other side.").waitFor();
  assert.equal((await world.phase("GET /contacts")).phase, "legacy", "nothing is done before it is confirmed");
  await page.getByRole("button", { name: "Change phase" }).click();
  await page.locator("#done").getByText("Moved from").waitFor();
  const moved = await world.phase("GET /contacts");
  assert.deepEqual([moved.phase, moved.share], ["translated", 0.05]);
  // On the data path: the other side is asked now.
  const asked = async () => (await (await fetch(`${world.service}/_sandbox/requests`)).text());
  const before = (await asked()).split("/v3/contacts").length;
  await (await world.call("/contacts")).arrayBuffer();
  assert.ok((await asked()).split("/v3/contacts").length > before, "the call reached the other side");
  const [transition] = await world.api("/api/phases/transitions");
  assert.deepEqual([transition.operation, transition.by, transition.who, transition.evidence], ["GET /contacts", "operator", "Ada", "both sides agree"]);
  await page.getByRole("link", { name: "Undo" }).click();
  await page.getByRole("button", { name: "Change phase" }).click();
  await page.locator("#done").getByText("Moved from").waitFor();
  assert.equal((await world.phase("GET /contacts")).phase, "legacy");
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test("a share that is none is refused with why", async () => {
  const page = await world.visitor();
  await page.goto(`${at(OPERATION)}/move?phase=canary&share=7`);
  await page.getByText("expected a share such as").waitFor();
  await page.context().close();
});

test("the second of two operators is told what the first has done, and keeps his reason", async () => {
  const [first, second] = [await world.visitor({ name: "Ada" }), await world.visitor({ name: "Grace" })];
  for (const page of [first, second]) {
    await page.goto(`${at("GET /chats/{id}")}/move?phase=${page === first ? "shadow" : "legacy"}&share=`);
    await page.locator("#reason").fill(page === first ? "first reason" : "second reason");
  }
  await first.getByRole("button", { name: "Change phase" }).click();
  await first.locator("#done").waitFor();
  await second.getByRole("button", { name: "Change phase" }).click();
  await second.getByRole("heading", { name: "Changed by another user" }).waitFor();
  const said = await second.locator("[role=alert]").innerText();
  assert.match(said, /Ada moved it from translated to shadow .*“first reason”/);
  assert.equal(await second.locator("#reason").inputValue(), "second reason");
  assert.equal((await world.phase("GET /chats/{id}")).phase, "shadow");
  await second.screenshot({ path: join(ARTEFACTS, "second-operator.png"), fullPage: true });
  await second.getByRole("button", { name: "Change phase" }).click();
  await second.locator("#done").waitFor();
  assert.equal((await world.phase("GET /chats/{id}")).phase, "legacy");
  await first.context().close();
  await second.context().close();
});

test("the gate is held with a reason and let go", async () => {
  const page = await world.visitor();
  await page.goto(at(OPERATION));
  await page.locator("#hold-reason").fill("the holidays");
  await page.getByRole("button", { name: "Hold", exact: true }).click();
  await page.getByText("Automatic transitions of this operation are paused.").waitFor();
  assert.equal((await world.phase(OPERATION)).held.reason, "the holidays");
  await page.getByRole("button", { name: "Resume automatic transitions" }).click();
  await page.getByText("Automatic transitions of this operation are resumed.").waitFor();
  assert.equal((await world.phase(OPERATION)).held, undefined);
  await page.goto("/history?kind=gate+held");
  await page.getByText("the holidays").first().waitFor();
  await page.context().close();
});

test("who may only look has no controls, and none of the forms does anything", async () => {
  const page = await world.visitor({ token: READ });
  await page.goto(at(OPERATION));
  assert.equal(await page.locator("#controls form").count(), 0);
  assert.equal(await page.getByText("read only").count(), 1);
  await page.goto(`${at(OPERATION)}/move?phase=legacy`);
  await page.getByRole("heading", { name: "Nothing was changed" }).waitFor();
  await page.context().close();
});

test("a page follows what happens and leaves alone what a person is at", async () => {
  const page = await world.visitor();
  await page.goto("/operations");
  await page.locator("#q").focus();
  await page.keyboard.type("chats");
  const row = page.locator("tbody tr").first();
  await row.evaluate((row) => getSelection().selectAllChildren(row.querySelector(".path")));
  const selected = await page.evaluate(() => getSelection().toString());
  await page.locator("#q").focus();
  const phase = () => page.locator("#operations tr", { hasText: "/contacts" }).first().locator(".phase").innerText();
  const was = await phase();
  const set = await fetch(`${world.admin}/api/phases`, {
    method: "POST",
    headers: { authorization: "Bearer operate-token-of-the-studio-test", "content-type": "application/json" },
    body: JSON.stringify({ operation: "GET /contacts", phase: was === "shadow" ? "legacy" : "shadow" }),
  });
  assert.equal(set.status, 200);
  await eventually("the phase shows", async () => (await phase()) !== was);
  assert.equal(await page.locator("#q").inputValue(), "chats", "what was typed stays");
  assert.equal(await page.evaluate(() => document.activeElement.id), "q", "the focus stays");
  assert.ok(selected.length > 0);
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test("after a form the focus is on its outcome, or on the control that sent it", async () => {
  const page = await world.visitor();
  const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent);
  // A form that changes something, and its refusal: the outcome.
  await page.goto(at(OPERATION));
  await page.locator("#hold-reason").fill("a trial");
  await page.getByRole("button", { name: "Hold", exact: true }).click();
  await page.waitForURL(/done=/);
  assert.equal(await focused(), "done");
  // Updates of the page leave the focus where it is.
  await page.waitForResponse((answer) => answer.request().headers()["x-studio-follow"] === "1");
  await page.waitForResponse((answer) => answer.request().headers()["x-studio-follow"] === "1");
  assert.equal(await focused(), "done");
  await page.getByRole("button", { name: "Resume automatic transitions" }).click();
  await page.getByText("Automatic transitions of this operation are resumed.").waitFor();
  assert.equal(await focused(), "done");
  await page.goto("/clients");
  await page.locator("#brownouts details summary").click();
  for (const name of ["operation", "client"]) await page.locator(`#brownouts select[name="${name}"]`).selectOption("*");
  await page.locator("#brownouts details button[type=submit]").press("Enter");
  await page.locator(".confirm form").evaluate((form) => (form.noValidate = true));
  await page.locator(".confirm button.danger").press("Enter");
  await page.locator("#refused").waitFor();
  assert.equal(await focused(), "refused");
  await page.goto("/pack");
  await page.getByRole("button", { name: "Reload", exact: true }).click();
  await page.locator("#reload [role=status]").getByText("reloaded").waitFor();
  assert.match(await page.evaluate(() => `${document.activeElement.role} ${document.activeElement.textContent}`), /^status\s+reloaded/);
  // A filter: its control, whether it is sent by the keyboard, by a button or by a change.
  await page.goto("/operations");
  await page.locator("#q").fill("contacts");
  await page.locator("#q").press("Enter");
  await page.waitForURL(/q=contacts/);
  assert.equal(await focused(), "q");
  await page.getByRole("button", { name: "Show" }).click();
  await page.waitForLoadState();
  assert.equal(await focused(), "Show");
  // A form of another page: its headline.
  await page.goto(at(OPERATION));
  await page.getByRole("button", { name: "Review…" }).click();
  await page.waitForURL(/move/);
  assert.equal(await page.evaluate(() => document.activeElement.nodeName), "H1");
  // A link is no form.
  await page.getByRole("link", { name: "Cancel" }).click();
  await page.locator("#controls").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.nodeName), "BODY");
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test("a chart begins with the first data, and says so", async () => {
  const page = await world.visitor();
  for (const path of ["/", "/?span=day", at(OPERATION)]) {
    await page.goto(path);
    const { times, series } = JSON.parse(await page.locator("#chart-traffic").getAttribute("data-chart"));
    assert.ok(times.length <= 60, `${path} has the time of this test alone: ${times.length}`);
    assert.ok(times.length === 2 || series[0].values[0] !== null, path);
    assert.match(await page.locator("#chart-traffic + .chart-axis").innerText(), /^no data before /, path);
    assert.match(await page.locator("#chart-traffic").getAttribute("aria-label"), /, no data before 20/);
  }
  await page.context().close();
});

test("everything is reached by the keyboard, in an order that makes sense", async () => {
  const page = await world.visitor();
  await page.goto("/operations");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "q");
  await page.keyboard.type("contacts");
  await page.keyboard.press("Enter");
  await page.waitForURL(/q=contacts/);
  await page.locator("#operations tbody a").first().focus();
  await page.keyboard.press("Enter");
  await page.locator("#controls").waitFor();
  await page.locator("#phase").focus();
  const reached = [];
  for (let press = 0; press < 3; press++) {
    await page.keyboard.press("Tab");
    reached.push(await page.evaluate(() => document.activeElement.id || document.activeElement.textContent));
  }
  assert.deepEqual(reached, ["share", "reason", "Review…"]);
  await page.locator("#chart-traffic").focus();
  await page.keyboard.press("ArrowLeft");
  await page.locator(".chart-note").waitFor({ state: "visible" });
  await page.context().close();
});

test("colours are chosen, show at once, and last", async () => {
  const page = await world.visitor();
  await page.getByRole("button", { name: "dark" }).click();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.goto("/pack");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.context().close();
  const plain = await world.visitor({ script: false });
  await plain.getByRole("button", { name: "dark" }).click();
  await plain.waitForLoadState();
  assert.equal(await plain.locator("html").getAttribute("data-theme"), "dark");
  await plain.context().close();
});

test("everything can be read without a script", async () => {
  const page = await world.visitor({ script: false });
  for (const path of Object.values(PAGES)) {
    await page.goto(path);
    assert.ok((await page.locator("main").innerText()).length > 20, path);
  }
  await page.goto("/operations");
  await page.locator("#q").fill("contacts");
  await page.getByRole("button", { name: "Show" }).click();
  assert.match(page.url(), /q=contacts/);
  await page.context().close();
});

test("a session that has ended loses nothing that was typed", async () => {
  const page = await world.visitor();
  await page.goto(`${at("GET /contacts")}/move?phase=shadow`);
  await page.locator("#reason").fill("typed before the end");
  await page.context().clearCookies();
  await page.getByRole("button", { name: "Change phase" }).click();
  await page.getByText("Your input is preserved").waitFor();
  await page.screenshot({ path: join(ARTEFACTS, "session-ended.png") });
  await page.getByLabel("Token").fill("operate-token-of-the-studio-test");
  await page.getByRole("button", { name: "Sign in" }).click();
  assert.equal(await page.locator("[name=reason]").inputValue(), "typed before the end");
  await page.context().close();
});

test("a pack that does not compile is told about as the compiler tells it, and mended", async () => {
  const page = await world.visitor();
  const file = join(world.pack, "pack.yaml");
  const whole = readFileSync(file, "utf8");
  appendFileSync(file, `\n"${HOSTILE.replaceAll("\\", "").replaceAll('"', '\\"').replace("\u202e", "")}": 1\n`);
  await page.goto("/pack");
  await page.getByRole("button", { name: "Reload", exact: true }).click();
  await page.locator("#reload .diagnostics").waitFor();
  const said = await page.locator("#reload .diagnostics").innerText();
  assert.match(said, /pack\.yaml:\d+/);
  assert.ok(said.includes("onerror"), "the text is shown as text");
  await page.screenshot({ path: join(ARTEFACTS, "reload-failed.png"), fullPage: true });
  await page.goto("/");
  await page.getByText("The last reload failed").waitFor();
  await page.screenshot({ path: join(ARTEFACTS, "overview-attention.png"), fullPage: true });
  writeFileSync(file, `${whole}\n# mended\n`);
  await page.goto("/pack?show=reload");
  await page.getByRole("button", { name: "Reload", exact: true }).click();
  await page.locator("#reload").getByText("reloaded").waitFor();
  await page.goto("/pack?show=changes");
  await page.getByText("+# mended").waitFor();
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test("hostile texts show as texts", async () => {
  const page = await world.visitor({ name: HOSTILE });
  await fetch(`${world.clients}/v2/<script>alert(1)</script>/x`, { headers: { "X-Authorization": `Bearer ${world.token}` } });
  await fetch(`${world.clients}/v2/chats/${encodeURIComponent(HOSTILE)}/messages?x=${encodeURIComponent(HOSTILE)}`, { headers: { "X-Authorization": HOSTILE.replace("\u202e", "") } });
  await page.goto(`${at("GET /contacts")}/move?phase=shadow&reason=${encodeURIComponent(HOSTILE)}`);
  await page.getByRole("button", { name: "Change phase" }).click();
  await page.locator("#done").waitFor();
  const q = encodeURIComponent(HOSTILE);
  const paths = [...Object.values(PAGES), `/operations?q=${q}&phase=${q}&sort=${q}`, `/history?q=${q}&kind=${q}`, `/pack?show=files&file=${q}&line=${q}`, `/pack?show=${q}`, `/operations/${q}/${q}`, `/requests?client=${q}&operation=${q}&id=${q}`, `/requests?status=${q}`, `/requests/${q}`, `/${q}`, `/login?to=${q}`, `${at(OPERATION)}/move?phase=${q}&share=${q}`];
  for (const path of paths) {
    await page.goto(path);
    const alien = await page.evaluate(() => [...document.querySelectorAll("[onerror],[onload],main img,main script,iframe")].map((one) => one.outerHTML));
    assert.deepEqual(alien, [], path);
  }
  assert.ok((await (await page.goto("/history")).text()).includes("&lt;script&gt;alert(2)"), "it is there, as a text");
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test("a gateway that goes away leaves what was seen, with since when", async () => {
  const page = await world.visitor();
  await page.route("**/*", (route) => (route.request().headers()["x-studio-follow"] ? route.abort() : route.continue()));
  await page.goto("/");
  await page.getByText("The gateway has not answered since").waitFor();
  await page.screenshot({ path: join(ARTEFACTS, "stale.png") });
  await page.unroute("**/*");
  await eventually("it says no more that the gateway is away", async () => (await page.locator("#live-state").isHidden()));
  await page.context().close();
});

test("what happened is there for auditors", async () => {
  const page = await world.visitor();
  const csv = await page.request.get("/history/export.csv");
  assert.match(await csv.text(), /^at,kind,of,what,by,why,scope,from,until\r\n/);
  const json = await (await page.request.get("/history/export.json")).json();
  assert.ok(json.some((entry) => entry.kind === "transition" && entry.why === "both sides agree"), JSON.stringify(json).slice(0, 2000));
  assert.ok(json.some((entry) => entry.kind === "reload failed"));
  await page.context().close();
});
