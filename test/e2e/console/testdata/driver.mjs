// Drives a browser for the tests in Go: each line on stdin is {page, call, args}, each on stdout its {value} or {error}.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const require = createRequire(process.argv[2] + '/');
const firefoxes = process.argv[3].includes('firefox');
if (firefoxes) {
  // A Firefox as it is installed lacks commands of WebDriver BiDi that playwright-core sends by itself: that they fail is no failure then.
  const { Module } = require('node:module');
  const load = Module._extensions['.js'];
  Module._extensions['.js'] = (m, file) =>
    file.endsWith('/playwright-core/lib/coreBundle.js') ? m._compile(readFileSync(file, 'utf8').replace(/\.send\("emulation\.(setMediaFeaturesOverride|setScreenSettingsOverride)", /g, '.sendMayFail("emulation.$1", '), file) : load(m, file);
}
const { chromium, firefox } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const browser = firefoxes ? await firefox.launch({ executablePath: process.argv[3], channel: 'moz-firefox' }) : await chromium.launch({
  executablePath: process.argv[3],
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
});
const pages = {};
const patience = 45000; // ms

/** What must never happen on a page: a refused load or script, an exception, a script of somebody else. */
const watch = () => {
  window.violations = [];
  window.canary = () => window.violations.push('the canary sang');
  addEventListener('securitypolicyviolation', (e) => window.violations.push(`${e.violatedDirective}: ${e.blockedURI} ${e.sample}`));
};

const own = {
  async open(name, options) {
    const context = await browser.newContext(options);
    await context.addInitScript(watch);
    await own.beside(name, context);
  },
  /** Opens another tab of the context. */
  async beside(name, context) {
    const page = await context.newPage();
    page.setDefaultTimeout(patience);
    page.faults = [];
    page.hosts = [];
    page.questions = [];
    page.on('dialog', (d) => (page.questions.push(d.type()), d.accept().catch(() => {})));
    page.on('pageerror', (e) => /^(Content-Security-Policy: |downloadable font: .*: content blocked )/s.test(e.stack || `${e.name}: ${e.message}`) || page.faults.push(e.stack || e.message)); // so Firefox reports what it refused to frames; of the page itself there are events
    page.on('request', (r) => page.hosts.push(new URL(r.url()).host));
    pages[name] = page;
  },
  /** Opens another tab in the window of a page, so that both share what a browser shares among tabs. */
  async another(name, of) {
    await own.beside(name, pages[of].context());
  },
  /** Has loads of such addresses fail. */
  async without(name, pattern) {
    await pages[name].route(pattern, (r) => r.abort());
  },
  async axe(name) {
    await pages[name].evaluate(axe);
    const found = await pages[name].evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    return found.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.target.join(' ')} ${n.any[0]?.message || n.failureSummary}`).join('; ')}`);
  },
  /** Loads an address until the selector is there and nothing is under way: the processor time of its scripts in ms, and its elements. */
  async cost(name, url, selector) {
    const page = pages[name];
    page.cdp ||= await page.context().newCDPSession(page);
    const spent = async () => (await page.cdp.send('Performance.getMetrics')).metrics.find((m) => m.name === 'ScriptDuration').value * 1000;
    await page.goto('about:blank');
    await page.cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
    const before = await spent();
    await page.goto(url);
    await page.waitForSelector(selector);
    await page.waitForSelector('main >> text=Loading …', { state: 'detached' });
    await page.waitForSelector('[aria-busy=true]', { state: 'detached' });
    const all = [(await spent()) - before, await page.evaluate(() => document.querySelectorAll('*').length)];
    await page.cdp.send('Performance.disable');
    return all;
  },
  /** Types a text in place of what a field has, in one step: wherever the page moves the focus meanwhile, no part of it goes to another field. */
  async fill(name, selector, text) {
    const field = pages[name].locator(selector).first();
    await field.waitFor();
    const put = (e, text) => {
      e.focus();
      if (document.activeElement !== e || e.readOnly) return false; // off, or replaced just now
      e.select();
      document.execCommand(text ? 'insertText' : 'delete', false, text);
      return e.value === text;
    };
    for (const end = Date.now() + patience; !(await field.evaluate(put, text)); await field.waitFor()) if (Date.now() > end) throw new Error('the field does not take the text');
  },
  /** Clicks what downloads a file: the file's name, and its bytes in base64. */
  async download(name, selector) {
    const [file] = await Promise.all([pages[name].waitForEvent('download'), pages[name].click(selector)]);
    return [file.suggestedFilename(), readFileSync(await file.path()).toString('base64')];
  },
  async allInnerTexts(name, selector) {
    return pages[name].locator(selector).allInnerTexts();
  },
  async faults(name) {
    const list = [...pages[name].faults, ...(await pages[name].evaluate(() => window.violations))];
    return list;
  },
  async hosts(name) {
    return [...new Set(pages[name].hosts)];
  },
  /** The kinds of questions that the browser itself has asked; each was answered with yes. */
  async questions(name) {
    return pages[name].questions;
  },
  async close(name) {
    await pages[name].context().close();
    delete pages[name];
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { page, call, args } = JSON.parse(line);
  let reply;
  try {
    const value = own[call] ? await own[call](page, ...args) : await pages[page][call](...args);
    reply = { value: ['string', 'number', 'boolean'].includes(typeof value) || Array.isArray(value) ? value : null };
  } catch (e) {
    reply = { error: `${e.message}`.split('\n').slice(0, 12).join('\n') };
  }
  process.stdout.write(JSON.stringify(reply) + '\n');
}
await browser.close();
