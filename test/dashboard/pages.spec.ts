import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import type { AdminHouse } from '#test/admin/admin-house';
import {
  chromiumPath,
  DESK,
  DESK_DARK,
  type Look,
  PHONE,
  PHONE_DARK,
  TestBrowser,
  type Visitor,
} from '#test/dashboard/browser';
import { startHouse } from '#test/dashboard/dashboard-house';
import { type Furnished, furnish } from '#test/dashboard/page-paths';

/** Every page in every look: something is there, nothing hinders anybody, nothing is wider than the window. */
describe.skipIf(!chromiumPath())('each page of the dashboard', () => {
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

  const enter = async (look: Look): Promise<Visitor> => {
    const visitor = await browser.visit(house.appliance.cspUrl, look);
    await visitor.logIn(house.root.admin);
    return visitor;
  };

  it.each([
    ['a desk, half of them', DESK, 0],
    ['a desk, the other half', DESK, 1],
    ['a phone, half of them', PHONE, 0],
    ['a phone, the other half', PHONE, 1],
  ])(
    'can be used by everybody, in light and dark, at %s',
    async (_, look, half) => {
      const visitor = await enter(look);
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

  it('leads by the keyboard alone from the address bar to a page', async () => {
    const visitor = await enter(DESK);
    const { page } = visitor;
    await visitor.go('/operations');
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the content');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.id')).toBe('main');
    await page.getByRole('link', { name: 'Volumes', exact: true }).focus();
    const outline = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle');
    expect(outline).not.toBe('none');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Volumes' }).waitFor();
    await visitor.close();
  });

  it('keeps in sight whose row it is, while a table that is wider than the window is scrolled', async () => {
    const visitor = await enter({ ...DESK, width: 820 });
    await visitor.go('/operations');
    const table = visitor.page.locator('.table-scroll');
    const hidden: number = await table.evaluate(frame => {
      frame.scrollLeft = 9_999;
      return frame.scrollLeft;
    });
    expect(hidden).toBeGreaterThan(0);
    const cut: number = await table.evaluate(frame => {
      const { left } = frame.getBoundingClientRect();
      const cells = [...frame.querySelectorAll(':is(th, td):first-child')];
      return cells.filter(cell => cell.getBoundingClientRect().left < left - 1).length;
    });
    expect(cut).toBe(0);
    expect(await visitor.overflow()).toBeLessThanOrEqual(0);
    await visitor.close();
  });

  it('takes nothing from elsewhere, and runs no script or style that is not its own', async () => {
    const visitor = await browser.visit(house.appliance.cspUrl);
    const asked = new Set<string>();
    visitor.page.on('request', request => asked.add(new URL(request.url()).origin));
    const answer = await visitor.page.goto('/');
    const headers = answer!.headers();
    expect(headers['content-security-policy']).toMatch(
      /default-src 'none'; script-src 'self'; style-src 'self' 'nonce-/,
    );
    expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
    expect(headers['content-security-policy']).not.toContain('unsafe');
    expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' });
    await visitor.logIn(house.root.admin);
    await visitor.settled();
    expect([...asked]).toEqual([new URL(house.appliance.cspUrl).origin]);
    const tried = await visitor.page.evaluate(
      `(() => { const s = document.createElement('script'); s.textContent = 'window.foreign = 1'; document.head.append(s); return window.foreign; })()`,
    );
    expect(tried).toBeUndefined();
    expect(visitor.complaints.splice(0).join()).toContain('Content Security Policy');
    await visitor.close();
  });

  const folder = join(PACKAGE_ROOT, 'docs', 'screenshots');
  const shots = (): [name: string, look: Look, path: string][] => [
    ['overview', DESK, '/'],
    ['operation-dark', DESK_DARK, `/operations/${furnished.stuck}`],
    ['changed-blocks', DESK, `/tenants/acme/snapshots/${furnished.snapshot}?base=${furnished.base}`],
    ['tenant', DESK_DARK, '/tenants/acme'],
    ['overview-phone', PHONE, '/'],
    ['volumes-phone-dark', PHONE_DARK, '/tenants/acme/volumes'],
  ];

  it.runIf(process.env.DASHBOARD_SCREENSHOTS)('is shown in the README', async () => {
    mkdirSync(folder, { recursive: true });
    for (const [name, look, path] of shots()) {
      const visitor = await enter(look);
      await visitor.go(path);
      await visitor.page.getByText('Live', { exact: true }).waitFor();
      const picture = await visitor.page.screenshot({ path: join(folder, `${name}.png`) });
      expect(picture.byteLength).toBeLessThan(150_000);
      await visitor.close();
    }
  });
});

/** What the first two buttons that take something away ask for. */
async function askedNames({ page }: Visitor): Promise<{ label: string; isSafe: boolean }[]> {
  const asked = [];
  const buttons = page.locator('main .danger-button');
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

/** Times of the page that are not relative, or do not say the absolute one on hover. */
const TIMES = String.raw`(() => {
  const found = [];
  for (const time of document.querySelectorAll('time')) {
    const at = new Date(time.dateTime);
    const day = String(at.getUTCDate()) + ' ';
    const clock = at.toISOString().slice(11, 19);
    if (!/^(now|(in )?\d+ (s|min|h|d)( ago)?)$/.test(time.textContent)) found.push(time.textContent + ' is not relative');
    if (!time.title.includes(clock) || !time.title.startsWith(day)) found.push(time.title + ' is not ' + time.dateTime);
  }
  const main = document.querySelector('main').cloneNode(true);
  for (const program of main.querySelectorAll('pre, code')) program.remove();
  const plain = /\d{4}-\d\d-\d\dT\d\d:\d\d/.exec(main.textContent);
  if (plain) found.push(plain[0] + ' is not relative');
  return found;
})()`;
