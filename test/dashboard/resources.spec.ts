import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { AdminHouse } from '#test/admin/admin-house';
import { idOf, makeVolume } from '#test/admin/resource-calls';
import { chromiumPath, DESK, type Look, PHONE_DARK, TestBrowser, type Visitor } from '#test/dashboard/browser';
import { startHouse } from '#test/dashboard/dashboard-house';

let house: AdminHouse;
let browser: TestBrowser;
let visitors: Visitor[] = [];

/** What an operator makes and gives out by the page, at a desk and on a phone. */
describe.skipIf(!chromiumPath())('resources in the page', () => {
  beforeAll(async () => {
    [house, browser] = await Promise.all([startHouse(), TestBrowser.launch()]);
  });
  afterEach(async () => {
    const done = visitors;
    visitors = [];
    await house.forgive();
    for (const visitor of done) await visitor.close();
  });
  afterAll(async () => {
    await browser?.close();
    await house?.close();
  });

  const LOOKS: [string, Look][] = [
    ['desk', DESK],
    ['phone', PHONE_DARK],
  ];
  const visit = async (look: Look): Promise<Visitor> => {
    const visitor = await browser.visit(house.appliance.cspUrl, look);
    visitors.push(visitor);
    return visitor;
  };
  const fits = async (visitor: Visitor): Promise<void> => {
    expect(await visitor.barriers()).toEqual([]);
    expect(await visitor.overflow()).toBeLessThanOrEqual(0);
  };

  it.each(LOOKS)('a bucket is made, and a program given a key to it, on a %s', async (where, look) => {
    const visitor = await visit(look);
    const { page } = visitor;
    const name = `letters-${where}`;
    await visitor.logIn(house.acme.admin, '/tenants/acme/buckets');
    expect(await page.getByRole('button', { name: 'Import' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Create a bucket' }).click();
    const dialog = page.getByRole('dialog');
    const field = (label: string) => dialog.getByRole('textbox', { name: label });
    await field('Name').fill(name);
    await dialog.getByLabel('Backend').selectOption('fake');
    await field('Parameters').fill('versioning=true\nquotaMaxSize');
    await dialog.getByRole('button', { name: 'Create it' }).click();
    await dialog
      .getByText(/expected KEY=VALUE in each line/)
      .first()
      .waitFor();
    await fits(visitor);
    await field('Parameters').fill('versioning=true\nquotaMaxSize=1Gi');
    await dialog.getByRole('button', { name: 'Create it' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.getByRole('link', { name }).click();
    await page.getByRole('heading', { name }).waitFor();

    await page.getByRole('button', { name: 'Issue an access' }).click();
    await field('Name').fill(`reader-${where}`);
    await dialog.getByRole('button', { name: 'Issue it' }).click();
    await dialog.getByText('Whoever has it may do what it may').waitFor();
    const [issued] = (
      await house.call(house.acme.admin, 'GET', '/tenants/acme/accesses', { query: { search: `reader-${where}` } })
    ).body.items;
    expect(issued.grants).toMatchObject([{ bucket: name, mode: 'read_only' }]);
    const path = `/tenants/acme/accesses/${issued.id}/key`;
    const { body: key } = await house.call(house.acme.admin, 'POST', path, { body: { reason: 'a test' } });
    await dialog.getByText(key.secretAccessKey).waitFor();
    await fits(visitor);
    await dialog.getByRole('button', { name: 'Done' }).click();

    await page.getByRole('link', { name: `reader-${where}` }).click();
    await page.getByRole('button', { name: 'Show key' }).click();
    await dialog.getByLabel('Reason').fill('it was lost');
    await dialog.getByRole('button', { name: 'Show it' }).click();
    await dialog.getByText(key.secretAccessKey).waitFor();
    const [entry] = await house.audit('access.reveal');
    expect(entry).toMatchObject({ reason: 'it was lost', subject_id: issued.id });
  });

  it.each(LOOKS)('a machine is made known and given a volume, on a %s', async (where, look) => {
    const volume = idOf(await makeVolume(house, house.acme, `disk-${where}`));
    const visitor = await visit(look);
    const { page } = visitor;
    await visitor.logIn(house.acme.admin, '/tenants/acme/hosts');
    await page.getByRole('button', { name: 'Add a host' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill(`machine-${where}`);
    await dialog.getByRole('textbox', { name: 'iSCSI names' }).fill(`iqn.2026-01.org.example:${where}`);
    await dialog.getByRole('textbox', { name: 'CHAP user' }).fill(`machine-${where}`);
    await dialog.locator('input[name="password"]').fill(`canary-of-${where}`);
    await dialog.getByRole('button', { name: 'Add it' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.getByRole('link', { name: `machine-${where}`, exact: true }).waitFor();

    await page.goto(`/tenants/acme/volumes/${volume}`);
    await page.getByRole('button', { name: 'Publish to a host' }).click();
    await dialog.getByRole('button', { name: 'Publish it' }).click();
    await dialog.getByText('choose a host').first().waitFor();
    await dialog.getByRole('combobox', { name: 'Host' }).fill(`machine-${where}`);
    await page.getByRole('option', { name: `machine-${where}` }).click();
    await fits(visitor);
    await dialog.getByRole('button', { name: 'Publish it' }).click();
    await dialog.getByText(`canary-of-${where}`).waitFor();
    await fits(visitor);
    const query = { volume };
    const { body } = await house.call(house.acme.viewer, 'GET', '/tenants/acme/publications', { query });
    await dialog.getByText(body.items[0].portals[0]).waitFor();
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('link', { name: `machine-${where}`, exact: true }).waitFor();
  });

  it.each(LOOKS)('schedules and policies are changed, and a token rotated, on a %s', async (where, look) => {
    const schedules = [{ name: 'hourly', everyMinutes: 60, retain: 24 }];
    const body = { name: `mine-${where}`, schedules };
    await house.call(house.acme.admin, 'POST', '/tenants/acme/protection-templates', { body });
    const visitor = await visit(look);
    const { page } = visitor;
    await visitor.logIn(house.acme.admin, '/tenants/acme/protection-templates');
    const dialog = page.getByRole('dialog');
    const row = (name: string) => page.getByRole('row').filter({ hasText: name });
    await row(`mine-${where}`).getByRole('button', { name: 'Change' }).click();
    await dialog.getByRole('textbox', { name: 'Keep the last' }).fill('48');
    await dialog.getByRole('button', { name: 'Another schedule' }).click();
    await dialog.getByRole('group', { name: 'Schedule 2' }).getByRole('textbox', { name: 'Name' }).fill('often');
    await fits(visitor);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'hidden' });
    const path = `/tenants/acme/protection-templates/mine-${where}`;
    expect((await house.call(house.acme.viewer, 'GET', path)).body.schedules).toMatchObject([
      { name: 'hourly', retain: 48 },
      { name: 'often', everyMinutes: 60 },
    ]);

    await page.goto('/tenants/acme/performance-policies');
    await page.getByRole('button', { name: 'New policy' }).click();
    await dialog.getByRole('textbox', { name: 'Name' }).fill(`cold-${where}`);
    await dialog.getByLabel('Space').selectOption('true');
    await fits(visitor);
    await dialog.getByRole('button', { name: 'Make it' }).click();
    await row(`cold-${where}`).getByRole('button', { name: 'Change' }).click();
    await dialog.getByLabel('Space').selectOption('');
    await dialog.getByRole('textbox', { name: 'Pool' }).fill('slow');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await row(`cold-${where}`).getByText('pool: slow').waitFor();
    await row(`cold-${where}`).getByRole('button', { name: 'Delete' }).click();
    await dialog.getByLabel(/^Type/).fill(`cold-${where}`);
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await row(`cold-${where}`).waitFor({ state: 'detached' });

    const token = { name: `ci-${where}`, role: 'viewer' };
    await house.call(house.acme.admin, 'POST', '/tenants/acme/tokens', { body: token });
    await page.goto('/tenants/acme/tokens');
    await row(`ci-${where}`).getByRole('button', { name: 'Rotate' }).click();
    await dialog.getByRole('button', { name: 'Rotate it' }).click();
    await dialog.getByText('This is the only time').waitFor();
    await fits(visitor);
    await dialog.getByRole('button', { name: 'Done' }).click();
    await row(`ci-${where} (former)`).waitFor();
  });

  it.each(LOOKS)('a volume that is in use is cloned, on a %s', async (where, look) => {
    const volume = idOf(await makeVolume(house, house.acme, `live-${where}`));
    const visitor = await visit(look);
    const { page } = visitor;
    await visitor.logIn(house.acme.operator, `/tenants/acme/volumes/${volume}`);
    await page.getByRole('button', { name: 'Clone' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Name' }).fill(`copy-${where}`);
    await fits(visitor);
    await dialog.getByRole('button', { name: 'Clone it' }).click();
    await page.getByRole('heading', { name: `copy-${where}` }).waitFor();
    const { body } = await house.call(house.acme.viewer, 'GET', '/tenants/acme/volumes', {
      query: { search: `copy-${where}` },
    });
    expect(body.items).toMatchObject([{ name: `copy-${where}`, cloneOf: expect.any(String) }]);
  });

  it('a bucket of the store is imported by administrators of the appliance', async () => {
    house.appliance.fake!.seedForeignBucket('of-long-ago');
    const visitor = await visit(DESK);
    const { page } = visitor;
    await visitor.logIn(house.root.admin, '/tenants/acme/buckets');
    await page.getByRole('button', { name: 'Import' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Name' }).fill('of-long-ago');
    await dialog.getByLabel('Backend').selectOption('fake');
    await dialog.getByRole('button', { name: 'Import it' }).click();
    await page.getByRole('link', { name: 'of-long-ago' }).waitFor();
    await fits(visitor);
  });
});
