// Acts that reach far: a brownout of everything is confirmed by a typed word, an open one is the first thing that the overview
// says, and an operation is moved against its evidence only on purpose and with a reason.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { api, call, chromium, demo, press, shot, until, visitor } from './retire.mjs';

const skip = !existsSync(chromium) && 'Chromium is not installed';
const OPERATION = 'GET /contacts';
const of_operation = `/operations/v2/${encodeURIComponent(OPERATION)}`;
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
const status = async () => (await call(running, '/v2/chats/7')).status;

async function sound(name) {
  await page.evaluate(readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8'));
  const found = await page.evaluate(() => window.axe.run(document));
  assert.deepEqual(found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(' ')).join(', ')}`), [], name);
  await shot(page, name);
}

test('a brownout of everything takes a typed word, is first on the overview, and is ended there', { skip }, async () => {
  await until('calls were counted', async () => (await api(running, '/api/usage')).some((one) => one.client === 'acme'));
  await go('/clients');
  await page.$eval('#brownouts details', (details) => { details.open = true; });
  for (const name of ['operation', 'client']) await page.selectOption(`#brownouts select[name="${name}"]`, '*');
  await press(page, '#brownouts details button[type="submit"]');
  assert.match(await text('#reach'), /acme.*made such calls in the last week, on average [\d.]+ calls per second/);
  assert.match(await text('#last-hour'), /\d+ calls? on all replicas/);
  await sound('brownout-of-everything');
  assert.equal(await status(), 200);

  // A browser that does not check the field sends the form without the word.
  await Promise.all([page.waitForEvent('load'), page.$eval('.confirm form', (form) => form.submit())]);
  assert.match(await text('#refused'), /Nothing was changed.*neither operations nor clients/);
  assert.deepEqual(await api(running, '/api/brownouts'), []);
  assert.equal(await status(), 200);

  await go('/clients/brownouts/new?operation=*&client=*&minutes=10&from=');
  await page.getByLabel('Type everything to confirm').fill('everything');
  await press(page, '.confirm button.danger');
  assert.equal(await status(), 503);

  await go('/');
  const first = '.todo li:first-child';
  assert.match(await text(first), /A brownout is open: all calls of all clients on v2 are rejected with 503; it ends in (9|10) min/);
  await sound('overview-brownout');
  await press(page, `${first} button`);
  assert.equal(new URL(page.url()).pathname, '/', 'it leads back to the overview');
  assert.equal(await status(), 200);
  assert.doesNotMatch(await text('main'), /brownout is open/);
  await until('the history knows both', async () => {
    const all = await (await page.request.get(`${running.admin}/history/export.json`)).json();
    return ['brownout set', 'brownout removed'].every((kind) => all.some((one) => one.kind === kind && one.scope === 'v2: all calls; all clients'));
  });
});

test('a window without a scope is refused, by the pages without a script too', { skip }, async () => {
  const still = await visitor(running, { javaScriptEnabled: false });
  try {
    await still.page.goto(`${running.admin}/clients/brownouts/new?operation=&client=&minutes=10`);
    assert.match(await still.page.textContent('main'), /choose the operations that it is for/);
    await still.page.goto(`${running.admin}/clients/brownouts/new?operation=GET%20%2Fchats&client=&minutes=10`);
    assert.match(await still.page.textContent('main'), /choose the clients that it is for/);
    await still.page.goto(`${running.admin}/clients/brownouts/new?operation=GET%20%2Fchats&client=delta&minutes=10&of=delta`);
    assert.equal(await still.page.locator('#confirm').count(), 0, 'no word is typed for one operation of one client');
    await still.page.getByRole('button', { name: 'Add the brownout' }).click();
    await still.page.waitForURL('**/clients/delta');
    assert.match(await still.page.textContent('#brownouts'), /open/);
    await still.page.getByRole('button', { name: 'Remove' }).click();
    assert.match(await still.page.textContent('#brownouts'), /No brownouts/);
  } finally {
    await still.browser.close();
  }
});

test('an operation whose answers differ is moved on only against a red verdict and with a reason', { skip }, async () => {
  await until('the planted difference is found', async () => {
    const report = await api(running, '/api/diff');
    return report.operations.some((one) => one.operation === OPERATION && one.counts.different > 2);
  });
  await go(`${of_operation}/move?phase=translated&share=`);
  assert.match(await text('#objection'), /The evidence is against it\..*\d+ of \d+ compared answers differ/s);
  assert.match(await text('#objection li'), /\$\[\*\]\.phone: .*\.map\.yaml:\d+/);
  assert.equal(await page.$eval('#objection', (notice) => notice.getAttribute('role')), 'alert');
  await sound('move-against-evidence');
  const phase = async () => (await api(running, '/api/phases')).find((one) => one.operation === OPERATION).phase;
  await Promise.all([page.waitForEvent('load'), page.$eval('.confirm form', (form) => form.submit())]);
  assert.match(await text('main'), /Nothing was changed[^]*takes a reason/);
  assert.equal(await phase(), 'shadow');
  await go(`${of_operation}/move?phase=translated&share=`);
  await page.fill('#reason', 'the old service is wrong');
  await page.getByRole('button', { name: 'Change phase against the evidence' }).click();
  await page.waitForSelector('#done');
  assert.equal(await phase(), 'translated');
  // What was seen in the phase before is no evidence of this one, and stays on the page of the differences.
  assert.match(await text('#evidence'), /No comparisons in this phase yet/);
  assert.match(await text('#findings'), /No differences in this phase/);
  await go('/');
  assert.doesNotMatch(await text('main'), /GET \/contacts differs too much/);
  await go(`/differences/v2/${encodeURIComponent(OPERATION)}`);
  assert.match(await text('main'), /\$\[\*\]\.phone/);
  // The way back takes neither.
  await go(`${of_operation}/move?phase=shadow&share=`);
  assert.equal(await page.$('#objection'), null);
});

test('the history says whether it has no entry at all or none that fits, and its downloads are of what fits', { skip }, async () => {
  await go('/history?q=nothing-of-the-kind');
  assert.match(await text('#history'), /No such entry/);
  await go('/history?kind=transition&q=the+old+service');
  assert.match(await text('#history tbody'), /GET \/contacts.*shadow → translated.*the old service is wrong/s);
  const found = await (await page.request.get(`${running.admin}/history/export.json?kind=transition&q=the+old+service`)).json();
  assert.deepEqual(found.map((one) => [one.kind, one.why]), [['transition', 'the old service is wrong']]);
});

test('no page had a fault of its own', { skip }, async () => {
  assert.deepEqual(faults, []);
});
