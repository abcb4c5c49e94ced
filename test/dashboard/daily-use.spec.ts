import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { AdminHouse } from '#test/admin/admin-house';
import { chromiumPath, DESK, type Look, TestBrowser, type Visitor } from '#test/dashboard/browser';
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

  const visitAs = async (path: string, look?: Look): Promise<Visitor> => {
    const visitor = await visit(look);
    await visitor.logIn(house.root.admin, path);
    return visitor;
  };
});
