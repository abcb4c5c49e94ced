import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { AdminHouse } from '#test/admin/admin-house';
import { chromiumPath, DESK, type Look, PHONE, TestBrowser, type Visitor } from '#test/dashboard/browser';
import { startHouse } from '#test/dashboard/dashboard-house';
import { freePort } from '#test/support/free-port';

let house: AdminHouse;
let browser: TestBrowser;
let visitors: Visitor[] = [];
/** As browsers reach the gateway: a name, since a passkey is of a name. */
let origin: string;

describe.skipIf(!chromiumPath())('the account page', () => {
  beforeAll(async () => {
    const port = await freePort();
    origin = `http://localhost:${port}`;
    [house, browser] = await Promise.all([
      startHouse({ port, env: { TRIVET_PUBLIC_URL: origin } }),
      TestBrowser.launch(),
    ]);
  });
  afterEach(async () => {
    const done = visitors;
    visitors = [];
    for (const visitor of done) {
      expect(visitor.complaints).toEqual([]);
      await visitor.close();
    }
  });
  afterAll(async () => {
    await browser?.close();
    await house?.close();
  });

  const visit = async (look: Look = DESK): Promise<Visitor> => {
    const visitor = await browser.visit(origin, look);
    visitors.push(visitor);
    return visitor;
  };

  it('shows where one is logged in, and ends the login of another browser', async () => {
    const { viewer } = house.acme;
    const [here, there] = [await visit(PHONE), await visit()];
    await there.logIn(viewer);
    await here.logIn(viewer, '/account');
    const { page } = here;
    const rows = page.getByRole('table', { name: 'Logins' }).getByRole('row');
    await rows.filter({ hasText: 'this one' }).waitFor();
    expect(await here.barriers()).toEqual([]);
    await rows.filter({ hasNotText: 'this one' }).getByRole('button', { name: 'End' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End' }).click();
    await page.getByText('The login has ended').waitFor();
    expect(await rows.getByRole('button', { name: 'End' }).count()).toBe(0);
    // By its events it learns that it is over.
    await there.page.getByText('Your login has ended').waitFor();
    await page.getByText('this one').waitFor();
  });
});
