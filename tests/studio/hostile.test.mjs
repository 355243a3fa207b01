// What comes from services, packs and captures is text, whatever it holds: upstreams that answer with markup in bodies, headers,
// reason phrases and errors; a pack whose texts, names and files hold it; captures and archives full of it. On every page.

import assert from "node:assert/strict";
import { appendFileSync, readFileSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { World, eventually } from "./world.mjs";

// Every one of these would do something if it were taken for markup, for an attribute, for an address or for a template.
const CORPUS = [
  "<script>alert(1)</script>",
  `"><img src=x onerror=alert(2)>`,
  `'><svg onload=alert(3)>`,
  "</textarea><script>alert(4)</script>",
  "</title></style><iframe srcdoc='<script>alert(5)</script>'>",
  "javascript:alert(6)",
  "{{constructor.constructor('alert(7)')()}}",
  "<!--<img src=--><img src=x onerror=alert(8)//>",
  "\u202e\u0000\u2028\ufeffgnp.exe",
  "<a href='data:text/html,<script>alert(9)</script>'>x</a>",
  `" autofocus onfocus=alert(10) x="`,
  "%3Cscript%3Ealert(11)%3C/script%3E &lt;b&gt; &#60;script&#62;",
];
const ALL = CORPUS.join(" ");
// What a header and a reason phrase may carry.
const HEADER = CORPUS.filter((text) => /^[\x20-\x7e]*$/.test(text)).join(" ");
// What a comment of YAML may carry.
const LINE = ALL.replace(/[\u0000-\u001f\u2028\u202e\ufeff]/g, "");

let evil;
let world;
/** What the services answer next. */
let mood = "body";
before(async () => {
  evil = createServer((request, response) => {
    request.resume();
    const headers = { "content-type": "application/json", "x-evil": HEADER, server: HEADER };
    const is_v3 = request.url.startsWith("/v3");
    const text = `${is_v3 ? "v3" : "v2"} ${ALL}`;
    const one = { id: 7, name: text, number: text, email: text, text, reason: text, error: { message: text }, [ALL]: text };
    if (mood === "html") return response.writeHead(500, HEADER, { ...headers, "content-type": `text/html; charset=${"x".repeat(20)}` }).end(`<html>${ALL}</html>`);
    if (mood === "error") return response.writeHead(400, HEADER, headers).end(JSON.stringify(one));
    if (mood === "broken") return response.writeHead(200, HEADER, { ...headers, "content-length": "9999" }).end(ALL).socket?.destroy();
    response.writeHead(200, HEADER, headers).end(JSON.stringify(/\/(chats|contacts|agents)(\?|$)/.test(request.url) ? [one, one] : one));
  });
  await new Promise((resolve) => evil.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${evil.address().port}`;
  world = await World.open({
    upstreams: `{ v3: { url: '${url}/v3' }, v2: { url: '${url}/v2' } }`,
    pack: (folder) => {
      // Texts of the pack that people are shown: reasons, descriptions of contracts, what stands beside lines, names of files.
      for (const file of readdirSync(folder).filter((name) => name.endsWith(".map.yaml"))) appendFileSync(join(folder, file), `\n# ${LINE}\n`);
      renameSync(join(folder, "agents.map.yaml"), join(folder, `"><img src=x onerror=alert(12)>.map.yaml`));
      for (const file of readdirSync(join(folder, "contracts"))) {
        const path = join(folder, "contracts", file);
        const quoted = `'${LINE.replaceAll("'", "''")}'`;
        writeFileSync(path, readFileSync(path, "utf8").replace(/^( +summary: ).*$/gm, `$1${quoted.replaceAll("$", "$$$$")}`));
      }
    },
  });
});
after(async () => {
  await world?.close();
  evil?.closeAllConnections();
  evil?.close();
});

const CALLS = ["/chats", "/chats/7", "/contacts", "/contacts/7", "/chats/7/messages", `/nothing/${encodeURIComponent(ALL)}`];
const calls = () => Promise.all(CALLS.map((path) => world.call(path).then((answer) => answer.arrayBuffer()).catch(() => {})));
/** What of a page is not ours, with what a browser made of it. */
const alien = (page) =>
  page.evaluate(() => {
    const all = [...document.querySelectorAll("*")];
    const attributes = all.flatMap((one) => [...one.attributes].filter(({ name, value }) => name.startsWith("on") || name === "srcdoc" || (["href", "src", "action", "formaction"].includes(name) && !/^(\/|#|\?|http:\/\/127\.0\.0\.1)/.test(value))).map(({ name, value }) => `${one.nodeName} ${name}=${value}`));
    return [...attributes, ...[...document.querySelectorAll("main script, main img, main iframe, main style, main link, main a[href^=data]")].map((one) => one.outerHTML)];
  });

test("what upstreams, packs and captures say is text on every page", async () => {
  const page = await world.visitor();
  // The next exchanges are kept in the playground, as they came.
  await page.goto("/playground");
  await page.getByRole("button", { name: /Record/ }).first().click();
  await page.waitForURL(/recorded/);
  for (mood of ["body", "error", "html", "broken"]) {
    await calls();
    await calls();
  }
  await eventually("there are differences", async () => (await world.api("/api/diff")).operations.length > 0);
  const recorded = await eventually("exchanges are recorded", async () => {
    const { exchanges } = await world.api("/api/playground/recorded");
    return exchanges.length > 10 && exchanges;
  });
  const paths = [
    "/", "/operations", "/requests", "/requests?client=%22%3E%3Cscript%3E", "/differences", "/playground", "/editor", "/clients", "/clients/acme", "/clients?outcome=unknown", "/history",
    "/pack", "/pack?show=shapes", "/pack?show=decisions", "/pack?show=settings", "/pack?show=contract&side=v2", "/pack?show=contract&side=v3", "/pack?show=changes",
    `/pack?show=files&file=${encodeURIComponent(`"><img src=x onerror=alert(12)>.map.yaml`)}`, "/pack?show=files&file=chats.map.yaml",
    ...["GET /chats", "GET /contacts", "GET /chats/{id}", "GET /agents"].flatMap((one) => [`/operations/v2/${encodeURIComponent(one)}`, `/differences/v2/${encodeURIComponent(one)}`, `/playground?operation=${encodeURIComponent(`v2 ${one}`)}`]),
    // One of each mood, and of each call.
    ...recorded.map((_, at) => `/playground?recorded=${at}`).filter((_, at) => at % 5 === 0),
  ];
  let shown = "";
  for (const path of paths) {
    await page.goto(path);
    assert.deepEqual(await alien(page), [], path);
    shown += await page.locator("main").innerText();
  }
  // It was there to be taken for markup: as text, of each kind of origin.
  assert.ok(shown.includes("</textarea><script>alert(4)</script>"), "bodies of upstreams, in the playground");
  assert.ok(shown.includes("<img src=x onerror=alert(12)>.map.yaml"), "names of files of the pack");
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test("an archive of somebody else, and mapping texts that do not compile, are text too", async () => {
  const page = await world.visitor();
  const entry = {
    request: { method: "POST", url: `http://x/v2/chats/31/messages?x=${encodeURIComponent(ALL)}`, headers: [{ name: "content-type", value: "application/json" }, { name: "x-evil", value: HEADER }], postData: { mimeType: "application/json", text: JSON.stringify({ text: ALL }) } },
    response: { status: 200, statusText: HEADER, headers: [{ name: "x-evil", value: HEADER }], content: { mimeType: "text/html", text: ALL } },
  };
  const answered = [
    { har: JSON.stringify(entry) },
    { har: ALL },
    { method: HEADER, target: `/v2/chats?x=${ALL}`, headers: `x: ${ALL}`, body: ALL },
    { method: "GET", target: "/v2/chats", "text:chats.map.yaml": `${LINE}: [${LINE}\n` },
    { method: "GET", target: "/v2/chats", [`text:${ALL}`]: ALL },
    { method: "GET", target: "/v2/chats", phase: ALL, client: ALL, live: "1", recorded: ALL },
  ];
  for (const fields of answered) {
    await page.goto("/playground");
    await page.evaluate((fields) => {
      const form = document.createElement("form");
      form.method = "post";
      form.action = "/playground";
      const token = document.querySelector("input[name=form_token]").value;
      for (const [name, value] of Object.entries({ form_token: token, ...fields })) {
        const area = document.createElement("textarea");
        [area.name, area.value] = [name, value];
        form.append(area);
      }
      document.body.append(form);
      form.submit();
    }, fields);
    await page.waitForLoadState("load");
    await page.locator("h1", { hasText: "Playground" }).waitFor();
    assert.deepEqual(await alien(page), [], JSON.stringify(fields).slice(0, 80));
  }
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});
