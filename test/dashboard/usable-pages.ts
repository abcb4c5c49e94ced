import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AdminHouse } from '#test/admin/admin-house';
import { chromiumPath, DESK, type Look, TestBrowser, type Visitor } from '#test/dashboard/browser';
import { startHouse } from '#test/dashboard/dashboard-house';
import { type Furnished, furnish } from '#test/dashboard/page-paths';

/** Every page in one look: something is there, nothing hinders anybody, nothing is wider than the window. */
export function describeUsablePages(what: string, look: Look): void {
  describe.skipIf(!chromiumPath())(`each page of the dashboard at ${what}`, () => {
    let house: AdminHouse;
    let browser: TestBrowser;
    let furnished: Furnished;
    beforeAll(async () => {
      [house, browser] = await Promise.all([startHouse(), TestBrowser.launch()]);
      furnished = await furnish(house);
    });
    afterAll(async () => {
      await browser?.close();
      await house?.close();
    });

    it.each([
      ['half of them', 0],
      ['the other half', 1],
    ])(
      'can be used by everybody, in light and dark, %s',
      async (_, half) => {
        const visitor = await browser.visit(house.appliance.cspUrl, look);
        await visitor.logIn(house.root.admin);
        const faults: string[] = [];
        let removals = 0;
        for (const [path, word] of furnished.pages.filter((_, at) => at % 2 === half)) {
          await visitor.go(path);
          await visitor.page.locator('main').getByText(word).first().waitFor();
          faults.push(...(await visitor.barriers()));
          // Of the other look only its colours and sizes are other ones.
          for (const scheme of ['dark', 'light'] as const) {
            await visitor.wear(scheme);
            if (scheme === 'dark') faults.push(...(await visitor.barriers('color-contrast')));
            for (const cut of await visitor.cutOff()) faults.push(`${path}, ${scheme}: ${cut}`);
            const wide = await visitor.overflow();
            if (wide > 0) faults.push(`${path}, ${scheme}, is ${wide} px wider than the window`);
          }
          if (await visitor.page.getByRole('alert').count()) faults.push(`${path} shows an error`);
          faults.push(...(await visitor.page.evaluate<string[]>(TIMES)).map(time => `${path}: ${time}`));
          const script = await visitor.page.evaluate<number>(SCRIPT_BYTES);
          if (script >= MOST_SCRIPT_BYTES) faults.push(`${path} has ${script} bytes of script`);
          if (look === DESK) {
            const asked = await askedNames(visitor);
            removals += asked.length;
            faults.push(
              ...asked.filter(({ isSafe }) => !isSafe).map(({ label }) => `${path}: ${label} asks for no name`),
            );
          }
        }
        if (look === DESK) expect(removals).toBeGreaterThan(5);
        expect(faults).toEqual([]);
        await visitor.close();
      },
      90_000,
    );
  });
}

/** What the first two buttons that take something away ask for. */
async function askedNames({ page }: Visitor): Promise<{ label: string; isSafe: boolean }[]> {
  const asked = [];
  const buttons = page.locator('main .danger-button:enabled');
  for (let at = 0; at < Math.min(2, await buttons.count()); at++) {
    const label = (await buttons.nth(at).textContent())!;
    await buttons.nth(at).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Cancel' }).waitFor();
    const named = await dialog.getByRole('textbox', { name: /^Type .+ to confirm$/ }).count();
    asked.push({ label, isSafe: named === 1 && (await dialog.locator('[type=submit]').isDisabled()) });
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
  }
  return asked;
}

/** Of the first view, not packed. */
const MOST_SCRIPT_BYTES = 300_000;

/** All that came with the page so far. */
const SCRIPT_BYTES = `performance.getEntriesByType('resource')
  .filter(({ name }) => name.endsWith('.js')).reduce((sum, { decodedBodySize }) => sum + decodedBodySize, 0)`;

/** Times of the page that are not relative, or do not say the absolute one on hover. */
const TIMES = String.raw`(() => {
  const found = [];
  for (const time of document.querySelectorAll('time')) {
    const at = new Date(time.dateTime);
    const day = String(at.getUTCDate()) + ' ';
    const clock = at.toISOString().slice(11, 19);
    if (!/^(now|(in )?\d+ (s|min|h|d)( ago)?)$/.test(time.textContent)) found.push(time.textContent + ' is not relative');
    if (!time.title.endsWith(' UTC')) found.push(time.title + ' has no time zone');
    if (!time.title.includes(clock) || !time.title.startsWith(day)) found.push(time.title + ' is not ' + time.dateTime);
  }
  const main = document.querySelector('main').cloneNode(true);
  for (const program of main.querySelectorAll('pre, code')) program.remove();
  const plain = /\d{4}-\d\d-\d\dT\d\d:\d\d/.exec(main.textContent);
  if (plain) found.push(plain[0] + ' is not relative');
  return found;
})()`;
