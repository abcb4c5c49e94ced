import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { AdminHouse } from '#test/admin/admin-house';
import { RealDriver } from '#test/csp/driver-client';
import { chromiumPath, type Look, TestBrowser, type Visitor } from '#test/dashboard/browser';
import { startHouse } from '#test/dashboard/dashboard-house';

let house: AdminHouse;
let browser: TestBrowser;

const PASSWORD = 'the driver of the first run';
const WIDE: Look = { width: 1440, height: 900, scheme: 'light' };
const NARROW: Look = { width: 390, height: 844, scheme: 'dark' };

/** From a tenant that has nothing to its first volume, by the keyboard, with a driver that reads what the page gives to copy. */
describe.skipIf(!chromiumPath())('the first run', () => {
  beforeAll(async () => {
    [house, browser] = await Promise.all([startHouse(), TestBrowser.launch()]);
  });
  afterAll(async () => {
    await browser?.close();
    await house?.close();
  });

  it.each([
    ['1440 px', 'wide', WIDE],
    ['390 px', 'narrow', NARROW],
  ])(
    'is a list of what is open, which what is there ticks off, at %s',
    async (_, tenant, look) => {
      const folder = join(house.appliance.folder, `pool-of-${tenant}`);
      mkdirSync(folder);
      const { root } = house;
      await house.call(root.admin, 'POST', '/tenants', { body: { name: tenant } });
      const user = { name: 'csp', role: 'operator', password: PASSWORD };
      await house.call(root.admin, 'POST', `/tenants/${tenant}/users`, { body: user });
      const visitor = await browser.visit(house.appliance.cspUrl, look);
      const { page } = visitor;
      const { keyboard } = page;
      const list = page.getByRole('region', { name: `First steps of ${tenant}` });
      const said = (text: string) => list.getByRole('status').getByText(text).waitFor();
      const step = (title: string) => list.getByRole('listitem').filter({ hasText: title });
      const toOverview = async (): Promise<void> => {
        await visitor.enter(page.getByRole('link', { name: 'Trivet', exact: true }));
        await list.waitFor();
      };

      await visitor.logIn(root.admin, `/tenants/${tenant}`);
      await toOverview();
      await said('1 of 5 are done.');
      expect(await visitor.barriers()).toEqual([]);
      expect(await visitor.overflow()).toBeLessThanOrEqual(0);

      await visitor.enter(step('A backend, where').getByRole('link', { name: 'Go there' }));
      await visitor.enter(page.getByRole('button', { name: 'Add a backend' }));
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Kind').waitFor();
      await visitor.reach(dialog.getByRole('textbox', { name: 'Name', exact: true }).first());
      await keyboard.type('local');
      await dialog.getByLabel('Kind').selectOption('reflink');
      const pool = dialog.getByRole('group', { name: 'Pool 1' });
      await visitor.reach(pool.getByRole('textbox', { name: 'Name', exact: true }));
      await keyboard.type('main');
      await visitor.reach(pool.getByRole('textbox', { name: 'Path' }));
      await keyboard.type(folder);
      await dialog.getByLabel('Exporter').selectOption({ label: 'none: volumes reach no host' });
      await visitor.enter(dialog.getByRole('button', { name: 'Register it' }));
      await dialog.waitFor({ state: 'hidden' });

      // A worker looks at the pool by itself: that is the test of it.
      await toOverview();
      await said('3 of 5 are done.');

      const driver = step('A driver or sidecar');
      await visitor.enter(driver.getByText('Volumes: the same, where the gateways run'));
      const yaml = driver.getByRole('region', { name: 'hpe-csi-inside.yaml' });
      await visitor.reach(yaml);
      expect(await visitor.barriers()).toEqual([]);
      expect(await visitor.overflow()).toBeLessThanOrEqual(0);
      const [secret] = parseAllDocuments((await yaml.textContent())!).map(document => document.toJS());
      const { backend, username, password, servicePort } = secret.stringData;
      expect(password).toBe(`<password of csp@${tenant}>`);
      expect(new URL(house.appliance.cspUrl).port).toBe(servicePort);
      const real = new RealDriver({ service: house.appliance.cspUrl, backend, username, password: PASSWORD });
      await real.login();
      await said('4 of 5 are done.');
      await step('The first volume').getByText('none').waitFor();

      await real.createVolume('first', 1_048_576);
      await said('All is done.');
      expect(await visitor.barriers()).toEqual([]);
      // Whoever comes later needs it no more.
      await visitor.go('/');
      expect(await list.count()).toBe(0);
      await visitor.close();
    },
    120_000,
  );

  it('is shown to nobody any more when an administrator says so, and offers that to nobody else', async () => {
    const { root, beta } = house;
    const visit = async (who: AdminHouse['beta']['admin']): Promise<Visitor> => {
      const visitor = await browser.visit(house.appliance.cspUrl);
      await visitor.logIn(who);
      return visitor;
    };
    const [admin, viewer] = [await visit(beta.admin), await visit(beta.viewer)];
    const listOf = ({ page }: Visitor) => page.getByRole('region', { name: 'First steps of beta' });
    await listOf(viewer).waitFor();
    expect(await viewer.page.getByRole('button', { name: 'Do not show this again' }).count()).toBe(0);
    await admin.enter(listOf(admin).getByRole('button', { name: 'Do not show this again' }));
    await admin.enter(admin.page.getByRole('dialog').getByRole('button', { name: 'Do not show this again' }));
    for (const visitor of [admin, viewer]) {
      await listOf(visitor).waitFor({ state: 'detached' });
      await visitor.go('/');
      expect(await listOf(visitor).count()).toBe(0);
      await visitor.close();
    }
    const query = { action: 'first-run.' };
    const { body } = await house.call(root.admin, 'GET', '/audit', { query });
    expect(body.items).toMatchObject([{ action: 'first-run.dismiss', tenant: 'beta' }]);
  });
});
