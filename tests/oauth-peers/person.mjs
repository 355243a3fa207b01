// A person with a browser: opens the link, logs in, agrees, and prints the address that the browser is sent back to.
//
// usage: node person.mjs LINK CALLBACK
const [link, callback] = process.argv.slice(2);
const jar = new Map();

async function go(url, form) {
  const response = await fetch(url, {
    redirect: 'manual',
    method: form ? 'POST' : 'GET',
    body: form ? new URLSearchParams(form) : undefined,
    headers: { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') },
  });
  for (const line of response.headers.getSetCookie()) {
    const [, name, value] = line.match(/^([^=]+)=([^;]*)/);
    if (value) jar.set(name, value); else jar.delete(name);
  }
  return response;
}

let url = link;
let form;
for (let steps = 0; steps < 20; steps += 1) {
  const response = await go(url, form);
  form = undefined;
  const location = response.headers.get('location');
  if (location) {
    const next = new URL(location, url).href;
    if (next.startsWith(callback)) {
      console.log(next);
      process.exit(0);
    }
    url = next;
    continue;
  }
  const page = await response.text();
  const prompt = page.match(/name="prompt" value="([a-z]+)"/)?.[1];
  if (!prompt) {
    console.error(`stuck at ${response.status}: ${page.slice(0, 400)}`);
    process.exit(1);
  }
  url = new URL(page.match(/<form[^>]* action="([^"]+)"/)[1], url).href;
  form = prompt === 'login' ? { prompt, login: 'someone', password: 'anything' } : { prompt };
}
console.error('too many steps');
process.exit(1);
