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

describe.skipIf(!chromiumPath())('the dashboard', () => {
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

  it.runIf(process.env.DASHBOARD_SCREENSHOTS)('is shown in the documents', async () => {
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
