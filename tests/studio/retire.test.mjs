// The pages Clients, Playground and Differences: every control with its effect on the data path, by pointer and by keyboard, on a
// telephone and in the dark, with hostile texts, and by axe-core.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { api, call, chromium, demo, press, shot, until, visitor } from './retire.mjs';

const skip = !existsSync(chromium) && 'Chromium is not installed';
const HOSTILE = ['<script>window.hit=1</script>', '"><img src=x onerror=window.hit=1>', "'-alert(1)-'", '</textarea><svg onload=window.hit=1>', '{{7*7}}', 'javascript:window.hit=1', '\u202egnp.exe'];
let running, browser, page, faults;

before(async () => {
  if (skip) return;
  running = await demo();
  ({ browser, page, faults } = await visitor(running));
});
after(async () => {
  await browser?.close();
  await running?.stop();
});

const go = (path) => page.goto(`${running.admin}${path}`);
const text = (selector) => page.$eval(selector, (element) => element.textContent);

/** No violation of axe-core's rules, in both colours, on a desk and in a hand; and nothing wider than the window. */
async function sound(path, name) {
  const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  for (const [size, viewport] of [['desk', { width: 1440, height: 1000 }], ['hand', { width: 390, height: 844 }]]) {
    for (const colours of ['light', 'dark']) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme: colours });
      await go(path);
      // The policy of the pages lets no script in; the debugger's own world is not the page's.
      await page.evaluate(source);
      const found = await page.evaluate(() => window.axe.run(document));
      const told = found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(' ')).slice(0, 3).join(', ')}`);
      assert.deepEqual(told, [], `${path}, ${size}, ${colours}`);
      const [wide, window_] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide <= window_, `${path}, ${size}: ${wide} of ${window_}`);
      await shot(page, `${name}-${size}-${colours}`);
    }
  }
  await page.setViewportSize({ width: 1440, height: 1000 });
  await page.emulateMedia({ colorScheme: null });
}

test('an example shows its way at once, by pointer and by the Tab key alone', { skip }, async () => {
  await go('/playground?operation=v2%20GET%20%2Fchats%2F%7Bid%7D%2Fmessages');
  const leaf = await page.waitForSelector('.trail-answer .leaf.made');
  await leaf.hover();
  const lit = await until('its way lights up', () => page.$$eval('.lit', (all) => all.map((one) => one.dataset.place ?? one.dataset.line)).then((all) => all.length > 1 && all));
  assert.ok(lit.some((one) => one.startsWith('reply-0 ')) && lit.some((one) => /\.map\.yaml:\d+$/.test(one)), String(lit));
  await page.mouse.move(0, 0);
  assert.equal((await page.$$('.lit')).length, 0);
  await page.focus('.trail-answer pre');
  await page.keyboard.press('Tab');
  assert.match(await text('#trail-note'), /^\$.* is \w+ from .* by .*\.map\.yaml:\d+$/);
  assert.ok((await page.$$('.lit')).length >= 2);
  await sound('/playground?operation=v2%20GET%20%2Fchats%2F%7Bid%7D%2Fmessages', 'playground');
});

test('every field of every trail has a line, and the table says the same without a script', { skip }, async () => {
  const still = await visitor(running, { javaScriptEnabled: false });
  try {
    await still.page.goto(`${running.admin}/playground?operation=v2%20POST%20%2Fflows%2F%7BflowId%7D%2Fcontact%2F%7BcontactId%7D%2Fexec`);
    const html = await still.page.content();
    const made = (html.match(/class="leaf made"/g) ?? []).length;
    assert.ok(made > 0 && html.includes('Fields and sources as a table') && html.includes('planned, never sent'), `${made}`);
  } finally {
    await still.browser.close();
  }
});

test('a request is written and tried, nothing of it is sent, and hostile texts stay texts', { skip }, async () => {
  const sent = async () => (await (await fetch(`${running.sandbox}/_sandbox/requests?method=POST`)).json()).filter((one) => one.path.includes('/chats/31/'));
  await go('/playground');
  await page.selectOption('select[name="method"]', 'POST');
  await page.type('input[name="target"]', '/v2/chats/31/messages');
  await page.$eval('textarea[name="body"]', (area, value) => { area.value = value; }, JSON.stringify({ text: HOSTILE.join(' ') }));
  await press(page, '#bench-form .primary');
  assert.equal(await text('.trail .status'), '201');
  assert.match(await text('.call header'), /planned, never sent/);
  assert.ok((await text('.call pre')).includes('<script>'), 'it shows as it was written');
  assert.equal(await page.evaluate(() => window.hit), undefined);
  assert.deepEqual(await sent(), []);
  // A mapping text that does not compile is shown as the compiler shows it, and it moves along with the request.
  await press(page, 'button[formaction="/editor"]');
  await page.focus('.cm-content');
  await page.keyboard.press('Control+End');
  await page.keyboard.type('\nrouts: <script>window.hit=1</script>');
  await page.keyboard.press('Escape');
  await press(page, 'button[formaction="/playground"]');
  assert.match(await text('#bench-form'), /With the edited texts of messages\.map\.yaml/);
  await page.type('input[name="target"]', '/v2/chats/31/messages');
  await press(page, '#bench-form .primary');
  assert.match(await text('#fault'), /does not compile[\s\S]*routs/);
  assert.equal(await page.$eval('input[name="target"]', (input) => input.value), '/v2/chats/31/messages');
  await press(page, 'button[formaction="/editor"]');
  assert.match(await page.$eval('textarea[data-editor]', (area) => area.value), /routs: <script>/);
  assert.equal(await page.evaluate(() => window.hit), undefined);
});

test('a pasted entry of an HTTP Archive is tried', { skip }, async () => {
  await go('/playground');
  const entry = { request: { method: 'GET', url: 'https://old.example.com/v2/agents', headers: [], queryString: [] }, response: { status: 200, headers: [], content: {} } };
  await page.$eval('textarea[name="har"]', (area, value) => { area.value = value; }, JSON.stringify(entry));
  await press(page, '#bench-form .primary');
  assert.match(await text('#verdict-title'), /GET \/agents/);
  assert.match(await text('.verdict'), /v2's own service answers/, 'it is in the shadow');
  for (const wrong of ['{', '{"log": {"entries": []}}']) {
    await go('/playground');
    await page.$eval('textarea[name="har"]', (area, value) => { area.value = value; }, wrong);
    await press(page, '#bench-form .primary');
    assert.match(await text('#fault'), /No request was run/);
  }
});

test('the page of an operation shows what differs, with the line, and what to paste', { skip }, async () => {
  await until('the planted differences are found', async () => {
    const report = await api(running, '/api/diff');
    return report.operations.some((one) => one.operation === 'GET /contacts' && one.counts.different > 2);
  });
  const path = `/differences/v2/${encodeURIComponent('GET /contacts')}`;
  await until('the page knows it', async () => {
    await go(path);
    return page.$('.difference');
  });
  assert.match(await text('.difference'), /\$\[\*\]\.phone/);
  assert.ok((await page.$$('.difference .mapping-lines .marked')).length > 0);
  assert.match(await text('#field-0-noise'), /compare:\n {2}types:\n {4}v2:\n {6}ContactItem: \{noise: \[phone\]\}/);
  await sound('/differences', 'differences');
  await sound(path, 'difference');
});

test('a grant that was ended is shown, connected by a link, and a client is rotated, revoked and restored', { skip }, async () => {
  await until('the ended grant is known', async () => {
    await go('/clients/coda');
    return /needs reconnect/.test(await text('.page-head'));
  });
  await sound('/clients/coda', 'client');
  await press(page, 'form[action="/clients/coda/connect"] button');
  assert.match(await text('#connect-url'), /\/oauth\/authorize\?.*state=/);
  assert.match(await text('#connect-link'), /Single use, expires in/);
  const link = await text('#connect-url');
  assert.ok(await page.$('body[data-live]'), 'the page goes on following');
  await page.reload();
  assert.equal(await text('#connect-url'), link, 'it stays until it expires');
  await go('/clients/bolt');
  assert.equal(await page.$('#connect-url'), null, 'it is of one client');

  await go('/clients/bolt');
  await press(page, 'form[action="/clients/bolt/rotate"] button').catch(() => {});
  const refused = await page.$('#refused');
  assert.ok(refused, 'a token of the configuration is not rotated here');
  await go('/clients/delta');
  await press(page, 'form[action="/clients/delta/revoke"] button');
  assert.match(await text('.page-head'), /revoked/);
  await press(page, 'form[action="/clients/delta/restore"] button');
  assert.doesNotMatch(await text('.page-head'), /revoked/);
});

test('what clients lose after the sunset is a page, which the overview links to', { skip }, async () => {
  await go('/');
  await Promise.all([page.waitForURL(/show=after-sunset/), page.click('#after-sunset-link')]);
  assert.match(await text('#after-sunset-sum'), /\d+ of them lose something, \d+ lose nothing/);
  assert.ok((await page.$$('#after-sunset tbody tr')).length > 0, 'clients have called what the new version has not');
  await sound('/clients?show=after-sunset', 'after-sunset');
});

test('the matrix can be narrowed, and a window that cannot be is refused with what was meant', { skip }, async () => {
  await until('unknown calls are counted', async () => {
    await go('/clients?outcome=unknown');
    return /v2 GET/.test(await text('#usage')) && /reports|\*/.test(await text('#usage'));
  });
  // The choice is a navigation of its own: the next one begins when it is there.
  await Promise.all([page.waitForURL(/outcome=translated/), page.selectOption('select[name="outcome"]', 'translated')]);
  assert.equal(await page.$eval('select[name="outcome"]', (select) => select.value), 'translated');
  await sound('/clients', 'clients');
  await go('/clients');
  await page.$eval('#brownouts details', (details) => { details.open = true; });
  assert.deepEqual(await page.$$eval('#brownouts select', (all) => all.map((one) => one.value)), ['', ''], 'no scope is chosen beforehand');
  await page.selectOption('#brownouts select[name="operation"]', '*');
  await page.selectOption('#brownouts select[name="client"]', 'acme');
  await page.$eval('#brownouts input[name="minutes"]', (input) => { input.removeAttribute('max'); input.value = '99999999'; });
  await press(page, '#brownouts details button[type="submit"]');
  assert.match(await text('main'), /Nothing was changed[^]*at most 31 days/);
  assert.equal((await call(running, '/v2/chats/7')).status, 200);
});

test('what is followed live keeps an open form and what is typed into it', { skip }, async () => {
  await go('/clients');
  await page.$eval('#brownouts details', (details) => { details.open = true; });
  await page.type('#brownouts input[name="reason"]', 'half a word');
  const before = await text('#usage');
  await until('the page follows', async () => (await text('#usage')) !== before);
  assert.equal(await page.$eval('#brownouts input[name="reason"]', (input) => input.value), 'half a word');
  assert.equal(await page.$eval('#brownouts details', (details) => details.open), true);
  assert.equal(await page.evaluate(() => document.activeElement?.name), 'reason');
});

test('no page had a fault of its own', { skip }, async () => {
  assert.deepEqual(faults, []);
});
