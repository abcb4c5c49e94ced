import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { AdminHouse } from '#test/admin/admin-house';
import { insertVolumes } from '#test/admin/resource-calls';
import { chromiumPath, DESK, type Look, PHONE, TestBrowser, type Visitor } from '#test/dashboard/browser';
import { startHouse } from '#test/dashboard/dashboard-house';

let house: AdminHouse;
let browser: TestBrowser;
let visitors: Visitor[] = [];

/** What a day with five tenants asks of the page. */
describe.skipIf(!chromiumPath())('a day of operating', () => {
  beforeAll(async () => {
    [house, browser] = await Promise.all([startHouse(), TestBrowser.launch()]);
  });
  afterEach(async () => {
    const done = visitors;
    visitors = [];
    for (const visitor of done) await visitor.close();
  });
  afterAll(async () => {
    await browser?.close();
    await house?.close();
  });

  const visit = async (look: Look = DESK): Promise<Visitor> => {
    const visitor = await browser.visit(house.appliance.cspUrl, look);
    visitors.push(visitor);
    return visitor;
  };

  it('shows no row of the tenant before, however slow the answer for the new one is', async () => {
    const { page, ...visitor } = await visitAs('/tenants/acme/users');
    await page.getByRole('row').filter({ hasText: 'the-viewer@acme' }).waitFor();
    await page.getByRole('button', { name: 'New user' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('of-acme');
    const answer = Promise.withResolvers<void>();
    await page.route('**/tenants/beta/users?*', async route => {
      await answer.promise;
      await route.continue();
    });
    // As by a link: the address changes, the page stays loaded.
    await page.evaluate(
      "history.pushState({}, '', '/tenants/beta/users'); dispatchEvent(new PopStateEvent('popstate'))",
    );
    await page.getByRole('status', { name: 'Loading' }).waitFor();
    expect(await page.getByRole('row').count()).toBe(0);
    expect(await page.getByRole('button', { name: 'Disable' }).count()).toBe(0);
    // What was typed for the one tenant is not sent to the other.
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    answer.resolve();
    await page.getByRole('row').filter({ hasText: 'the-viewer@beta' }).waitFor();
    expect(await page.getByText('@acme').count()).toBe(0);
    expect(visitor.complaints).toEqual([]);
  });

  it('changes nobody else who has the name by now', async () => {
    const { page } = await visitAs('/tenants/acme/users');
    const path = '/tenants/acme/users/carl';
    const body = { name: 'carl', role: 'viewer', password: 'a password of carl' };
    const make = () => house.call(house.acme.admin, 'POST', '/tenants/acme/users', { body });
    expect((await make()).status).toBe(201);
    const row = page.getByRole('row').filter({ hasText: 'carl@acme' });
    await row.getByRole('button', { name: 'Disable' }).click();
    const dialog = page.getByRole('dialog', { name: 'Disable carl@acme' });
    await page.getByRole('button', { name: 'Pause', includeHidden: true }).evaluate(button => button.click());
    expect((await house.change(house.acme.admin, 'DELETE', path)).status).toBe(204);
    expect((await make()).status).toBe(201);
    await dialog.getByRole('button', { name: 'Disable' }).click();
    await dialog.getByRole('alert').getByText('another one has its name by now').waitFor();
    expect((await house.call(house.acme.admin, 'GET', path)).body.state).toBe('active');
  });

  it('shows the bytes that will be sent, and says of a wrong one what is expected', async () => {
    const { page, ...visitor } = await visitAs('/tenants/acme/volumes');
    await page.getByRole('button', { name: 'New volume' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('sized');
    const size = dialog.getByRole('textbox', { name: 'Size' });
    // An object store keeps no volumes.
    await expect
      .poll(() => dialog.getByLabel('Backend').locator('option').allTextContents())
      .toEqual(['the first one of block volumes', 'local']);
    for (const [typed, said] of [
      ['5 gigs', /"5 gigs" is no size[\s\S]*Correct the fields/],
      ['5', /no multiple of 512, the block size: the next one is 512/],
    ] as const) {
      await size.fill(typed);
      await dialog.getByRole('button', { name: 'Make it' }).click();
      const alert = dialog.getByRole('alert').filter({ hasText: said });
      await alert.waitFor();
      expect(await alert.textContent()).not.toMatch(/defect|The page failed/i);
      expect(await size.getAttribute('aria-invalid')).toBe('true');
    }
    await size.fill('100 GB');
    await dialog.getByText('100,000,000,000 bytes').waitFor();
    await size.fill('100 GiB');
    await dialog.getByText('107,374,182,400 bytes').waitFor();
    await page.goto('/tenants/acme');
    await page.getByRole('button', { name: 'Set quotas' }).click();
    await dialog.getByLabel('Volumes', { exact: true }).fill('-3');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByRole('alert').getByText('"-3" is no whole number').first().waitFor();
    expect(visitor.complaints).toEqual([]);
  });

  it('takes a snapshot of any volume, goes to the appliance by the switcher, and begins a page at its top', async () => {
    await insertVolumes(house, house.acme, { from: 0, to: 400 });
    const { page } = await visitAs('/tenants/acme/snapshots');
    await page.getByRole('button', { name: 'Take a snapshot' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('late');
    await dialog.getByRole('button', { name: 'Take it' }).click();
    await dialog.getByRole('alert').getByText('choose a volume').first().waitFor();
    await dialog.getByRole('combobox', { name: 'Volume' }).fill('page-00399');
    await page.getByRole('option', { name: 'page-00399' }).click();
    const sent = page.waitForRequest(request => request.method() === 'POST' && request.url().endsWith('/snapshots'));
    await dialog.getByRole('button', { name: 'Take it' }).click();
    expect((await sent).postDataJSON()).toMatchObject({
      name: 'late',
      volume: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });

    await page.goto('/tenants/acme/volumes');
    const next = page.getByRole('button', { name: 'Next page' });
    await next.scrollIntoViewIfNeeded();
    expect(await page.evaluate<number>('window.scrollY')).toBeGreaterThan(0);
    await next.click();
    await page.waitForURL(/cursor=/);
    expect(await page.evaluate<number>('window.scrollY')).toBe(0);

    await page.getByRole('combobox', { name: 'Tenant' }).fill('appl');
    await page.getByRole('option', { name: /^appliance/ }).click();
    await page.waitForURL('**/tenants/appliance/volumes');
  });

  it('closes the menu of a phone by Escape, and leads to the login when a read is refused for want of one', async () => {
    const { page } = await visitAs('/tenants/acme/users', PHONE);
    await page.getByRole('button', { name: 'Open the navigation' }).click();
    await page.getByRole('link', { name: 'Volumes', exact: true }).waitFor();
    await page.keyboard.press('Escape');
    const burger = page.getByRole('button', { name: 'Open the navigation' });
    await burger.waitFor();
    expect(await burger.evaluate(button => button === button.ownerDocument.activeElement)).toBe(true);
    // Events still flow: what ends is the next read, which waits as long as the page does.
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.route('**/tenants/acme/users?*', route =>
      route.fulfill({
        status: 401,
        contentType: 'application/problem+json',
        body: JSON.stringify({ code: 'unauthenticated', title: 'Not logged in', detail: 'log in' }),
      }),
    );
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText('Your login has ended').waitFor();
  });

  it('sets a pool’s thin ratio, and says in how many days the pool is full', async () => {
    const path = '/tenants/acme/backends/local';
    // It has grown for two days so that a tenth of it would be full in one.
    await house.query(
      `INSERT INTO trivet.pool_sample (tenant_id, backend_id, pool, at, used_bytes, total_bytes)
       SELECT p.tenant_id, p.backend_id, p.name, now() - n * interval '1 hour', p.total_bytes / 10 * (60 - n) / 24, p.total_bytes
         FROM trivet.pool p, generate_series(1, 48) AS n WHERE p.tenant_id = $1`,
      [house.acme.id],
    );
    const pool = async () => (await house.call(house.root.viewer, 'GET', path)).body.pools[0];
    const { name, daysToFull, thinRatio } = await pool();
    expect(daysToFull).toBeGreaterThan(1);
    const { page } = await visitAs(path);
    const row = page.getByRole('table', { name: 'Pools' }).getByRole('row').filter({ hasText: name });
    await row.getByText(/^\d+ days$/).waitFor();
    const shown = Number.parseInt((await row.getByText(/^\d+ days$/).textContent())!, 10);
    expect(Math.abs(shown - daysToFull)).toBeLessThanOrEqual(1);
    await row.getByText(`${thinRatio} ×`).waitFor();
    await row.getByRole('button', { name: 'Set the ratio' }).click();
    const dialog = page.getByRole('dialog', { name: `Thin ratio of pool ${name}, tenant acme` });
    const ratio = dialog.getByLabel('Times its size');
    for (const wrong of ['a lot', '-1', '1001']) {
      await ratio.fill(wrong);
      await dialog.getByRole('button', { name: 'Set it' }).click();
      await dialog.getByText('expected a number above 0').first().waitFor();
    }
    expect((await pool()).thinRatio).toBe(thinRatio);
    await ratio.fill('2.5');
    await dialog.getByRole('button', { name: 'Set it' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await row.getByText('2.5 ×').waitFor();
    expect(await pool()).toMatchObject({ thinRatio: 2.5 });
    const { body } = await house.call(house.acme.viewer, 'GET', '/audit', { query: { action: 'backend.change' } });
    expect(JSON.stringify(body.items[0])).toContain('2.5');
  });

  const visitAs = async (path: string, look?: Look): Promise<Visitor> => {
    const visitor = await visit(look);
    await visitor.logIn(house.root.admin, path);
    return visitor;
  };
});
