// A migration walked through in the studio, from a difference to the end of the old version: found, its line opened in the editor,
// a fix compared with recorded traffic, its patch applied, the difference gone, the operation promoted, who remains, brownout, sunset.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { api, call, chromium, demo, press, program, shot, until, visitor } from './retire.mjs';

const OPERATION = 'GET /contacts/{id}';
const RIGHT = '    same: [id, name, email, mobile, phone]\n    rename:\n';
const WRONG = '    same: [id, name, email]\n    rename:\n      mobile: {v3: phone}\n      phone: {v3: mobile}\n';

test('a difference is found, mended and promoted, and the old version is brought to its end', { skip: !existsSync(chromium) && 'Chromium is not installed' }, async () => {
  const running = await demo(async (pack) => {
    // The examples of the file would say that the line is wrong.
    await rm(join(pack, 'contacts.examples.map.yaml'));
    const path = join(pack, 'contacts.map.yaml');
    const text = await readFile(path, 'utf8');
    assert.ok(text.includes(RIGHT));
    await writeFile(path, text.replace(RIGHT, WRONG));
  }, ['--quiet']);
  const { browser, page, faults } = await visitor(running);
  try {
    const reads = async (times) => {
      for (let number = 0; number < times; number += 1) {
        assert.equal((await call(running, '/v2/contacts/1001')).status, 200);
      }
    };
    const difference = () => api(running, '/api/diff').then((report) => report.operations.find((one) => one.operation === OPERATION));

    // Found: the operation is in the shadow, and what the mapping makes is not what clients get.
    await reads(5);
    await until('the dual run finds it', async () => (await difference())?.counts.different >= 3);
    await page.goto(`${running.admin}/differences`);
    await until('the list shows it', async () => {
      await page.reload();
      return page.$(`a[href="/differences/v2/${encodeURIComponent(OPERATION)}"]`);
    });
    await press(page, `a[href="/differences/v2/${encodeURIComponent(OPERATION)}"]`);
    await shot(page, 'walk-1-difference');

    // Located: the marked line is the wrong one, and the editor opens at it.
    const wrong = ['mobile: {v3: phone}', 'phone: {v3: mobile}'];
    const marked = await page.$$eval('.difference', (all) => all.map((one) => [one.querySelector('.marked code')?.textContent.trim(), one.querySelector('.source-name a')?.getAttribute('href')]));
    const [, opened] = marked.find(([line]) => wrong.includes(line)) ?? assert.fail(JSON.stringify(marked));
    await press(page, `a[href="${opened}"]`);
    const line = async () => (await page.waitForSelector('.cm-activeLine')).textContent().then((text) => text.trim());
    assert.ok(wrong.includes(await line()), await line());
    await shot(page, 'walk-2-editor');

    // Recorded: five hundred exchanges, answered by the old service and compared in the shadow.
    await press(page, 'button[formaction="/editor/record"]');
    const recorded = async () => (await api(running, '/api/playground/recorded')).exchanges.length;
    for (let sent = 0; sent < 500; sent += 50) {
      await reads(50);
      await until('the exchanges are recorded', async () => (await recorded()) >= sent + 50);
    }
    // A recorded exchange shows the way of the field.
    await page.goto(`${running.admin}/playground?recorded=0`);
    await page.waitForSelector('.leaf.made');
    const way = await page.$$eval('.leaf.made', (all) => {
      const leaf = all.find((one) => one.dataset.place === 'answer $.phone');
      leaf.focus();
      return { note: leaf.dataset.note, lit: [...document.querySelectorAll('.lit')].map((one) => one.dataset.place ?? one.dataset.line) };
    });
    assert.match(way.note, /\$\.phone is kept from reply 1 \$\.mobile, by contacts\.map\.yaml:\d+/);
    assert.ok(way.lit.some((place) => place === 'reply-0 $.mobile'), String(way.lit));
    await page.goto(`${running.admin}${opened}`);
    await press(page, 'button[formaction="/editor/what-if"]');
    const effect = () => page.$eval('#effect-sum', (sum) => sum.textContent);
    assert.match(await effect(), /^500 of 500 recorded exchanges differ\. 0 of \d+ examples differ\.$/);
    const changes = await page.$$eval('#what-changes tbody tr td:nth-child(2) strong', (all) => all.map((one) => one.textContent));
    assert.deepEqual(changes.map((change) => change.split(': ')[0]).sort(), ['answer $.mobile', 'answer $.phone']);
    await shot(page, 'walk-3-differ');

    // Corrected by keyboard alone, from the line that the result names.
    await press(page, '#what-changes button[name="go"]');
    const isFirst = (await line()) === wrong[0];
    const write = async (field) => {
      await page.keyboard.press('End');
      await page.keyboard.press('Shift+Home');
      await page.keyboard.type(`${field}: {v3: ${field}}`);
      // Closes the list of names, if it is open.
      await page.keyboard.press('Escape');
    };
    await write(isFirst ? 'mobile' : 'phone');
    await page.keyboard.press(isFirst ? 'ArrowDown' : 'ArrowUp');
    await write(isFirst ? 'phone' : 'mobile');
    await until('the pack compiles', async () => (await page.$eval('#editor-status', (status) => status.textContent)) === 'The pack compiles.');
    await press(page, 'button[formaction="/editor/what-if"]');
    assert.match(await effect(), /^0 of 500 recorded exchanges differ\. 0 of \d+ examples differ\.$/);
    await shot(page, 'walk-4-equal');

    // Downloaded: the patch is what `git apply` takes, and the pack that it makes compiles.
    const [download] = await Promise.all([page.waitForEvent('download'), page.$eval('button[formaction="/editor/patch"]', (button) => button.click())]);
    const patch = await download.path();
    const elsewhere = await mkdtemp(join(tmpdir(), 'switchback-patch-'));
    await cp(running.pack, elsewhere, { recursive: true });
    const apply = (cwd) => execFileSync('git', ['apply', patch], { cwd, env: { ...process.env, GIT_CEILING_DIRECTORIES: cwd } });
    apply(elsewhere);
    execFileSync(program, ['check', elsewhere]);
    const mended = (await running.read('contacts.map.yaml')).replace(wrong[0], 'mobile: {v3: mobile}').replace(wrong[1], 'phone: {v3: phone}');
    assert.equal(await readFile(join(elsewhere, 'contacts.map.yaml'), 'utf8'), mended);
    await rm(elsewhere, { recursive: true });
    assert.ok((await running.read('contacts.map.yaml')).includes(WRONG), 'the studio writes no file');

    // Applied: the gateway takes it up.
    const before = (await api(running, '/api/pack')).generation;
    apply(running.pack);
    await until('the pack is reloaded', async () => (await api(running, '/api/pack')).generation > before);

    // Gone: under the new pack evidence is counted anew, and nothing differs. The sandbox answers both sides alike.
    await reads(5);
    await until('what is compared is equal', async () => {
      const found = await difference();
      return found?.counts.different === 0 && found.counts.equal >= 3;
    });
    await until('the page says so', async () => {
      await page.goto(`${running.admin}/differences/v2/${encodeURIComponent(OPERATION)}`);
      return (await page.$eval('main', (main) => main.textContent)).includes('No compared answer differs.');
    });
    await shot(page, 'walk-5-gone');

    // Promoted.
    await api(running, '/api/phases', { operation: OPERATION, phase: 'translated' });
    await reads(1);

    // Who remains.
    await page.goto(`${running.admin}/clients`);
    await until('the matrix counts its calls', async () => {
      await page.reload();
      return page.$eval('#usage', (usage) => usage.textContent.includes('/contacts/{id}') && usage.textContent.includes('acme')).catch(() => false);
    });
    await shot(page, 'walk-6-clients');
    await press(page, '#client-acme a');
    const letter = await page.$eval('#letter-text', (text) => text.textContent);
    assert.match(letter, /== GET \/contacts\/\{id\}/);
    assert.match(letter, /\$V3_TOKEN/);

    // Brownout: the client is told when to come again; then it is removed.
    await page.$eval('#brownouts details', (details) => { details.open = true; });
    await page.selectOption('#brownouts select[name="operation"]', OPERATION);
    await page.type('#brownouts input[name="reason"]', 'v2 ends <b>soon</b>');
    await press(page, '#brownouts details button[type="submit"]');
    await press(page, '.confirm button.danger');
    const turned = await call(running, '/v2/contacts/1001');
    assert.equal(turned.status, 503);
    assert.ok(Number(turned.headers.get('retry-after')) > 500);
    assert.equal(JSON.parse(turned.text).reason, 'v2 ends <b>soon</b>');
    assert.ok((await page.$eval('#brownouts tbody', (body) => body.textContent)).includes('v2 ends <b>soon</b>'), 'hostile text is text');
    await shot(page, 'walk-7-brownout');
    await press(page, '#brownouts tbody button');
    assert.equal((await call(running, '/v2/contacts/1001')).status, 200);

    // Sunset: told before, refused from the day on.
    const date = async (at) => {
      await page.$eval('input[name="at"]', (input, value) => { input.value = value; }, at);
      await press(page, 'form[action="/clients/acme/sunset"] button');
    };
    await date('2099-01-01');
    assert.equal((await call(running, '/v2/contacts/1001')).headers.get('sunset'), 'Thu, 01 Jan 2099 00:00:00 GMT');
    await date('2020-01-01');
    const ended = await call(running, '/v2/contacts/1001');
    assert.equal(ended.status, 410);
    assert.equal(JSON.parse(ended.text).reason, 'This version of the service has ended.');
    await shot(page, 'walk-8-sunset');
    assert.deepEqual(faults, []);
  } finally {
    await browser.close();
    await running.stop();
  }
});
