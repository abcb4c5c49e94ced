import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { uuidv7 } from '#platform/uuid';
import type { AdminHouse } from '#test/admin/admin-house';
import { idOf, makeVolume } from '#test/admin/resource-calls';
import { chromiumPath, DESK, PHONE, TestBrowser, type Visitor } from '#test/dashboard/browser';
import { makeStuck, startHouse } from '#test/dashboard/dashboard-house';

let house: AdminHouse;
let browser: TestBrowser;
const visitors: Visitor[] = [];

/** What an operations team does all day: lists with their filters, and the ways by the keyboard. */
describe.skipIf(!chromiumPath())('ways through the page', () => {
  beforeAll(async () => {
    [house, browser] = await Promise.all([startHouse(), TestBrowser.launch()]);
    for (const name of ['held-1', 'held-2', 'held-3', 'held-4', 'held-5']) await makeStuck(house, name);
  });
  afterEach(async () => {
    for (const visitor of visitors.splice(0)) await visitor.close();
  });
  afterAll(async () => {
    await browser?.close();
    await house?.close();
  });

  const visit = async (): Promise<Visitor> => {
    const visitor = await browser.visit(house.appliance.cspUrl, DESK);
    visitors.push(visitor);
    return visitor;
  };

  it('says at one glance what is stuck and what to do, with the health below it', async () => {
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.root.admin);
    const notice = page.getByRole('region', { name: 'Needs attention' }).locator('.notice');
    await notice.getByText('5 operations at backend fake, tenant default, wait for a person').waitFor();
    expect(await notice.count()).toBe(1);
    const text = await notice.textContent();
    expect(text).toMatch(/The oldest, .*bucket\.delete of bucket held-1: bucket held-1 still holds objects/);
    expect(text!.match(/What to do/g)).toHaveLength(1);
    const health = await page.getByRole('heading', { name: 'Health' }).boundingBox();
    expect(health!.y + health!.height).toBeLessThan(DESK.height);
    // Of this house's pools there is one figure, if any.
    await page.getByText('No trend yet').first().waitFor();
    await notice.getByRole('link', { name: 'Show them' }).click();
    await page.getByRole('heading', { name: 'Operations' }).waitFor();
    await page.getByRole('row').filter({ hasText: 'held-5' }).waitFor();
    expect(await page.getByRole('table').getByRole('row').count()).toBe(6);
    expect(await page.getByLabel('Error', { exact: true }).inputValue()).toBe('failed_precondition');
  });

  describe('the filters of a list', () => {
    let visitor: Visitor;
    beforeAll(async () => {
      visitor = await browser.visit(house.appliance.cspUrl, DESK);
      await visitor.logIn(house.root.admin, '/account');
    });
    afterAll(() => visitor?.close());

    const at = '/tenants/acme';
    it.each([
      ['/operations', ['state', 'stuck', 'kind', 'resource', 'tenant', 'backend', 'error', 'since', 'until', 'sort']],
      ['/audit', ['tenant', 'actor', 'action', 'subject', 'since', 'until']],
      ['/tenants', ['search', 'state']],
      ['/all/volumes', ['tenant', 'search', 'state', 'backend', 'condition', 'sort']],
      ['/all/snapshots', ['tenant', 'search', 'sort']],
      ['/all/hosts', ['tenant', 'search', 'sort']],
      ['/all/buckets', ['tenant', 'search', 'state', 'backend', 'condition', 'sort']],
      [`${at}/volumes`, ['search', 'state', 'backend', 'condition', 'sort']],
      [`${at}/recycle-bin`, ['search']],
      [`${at}/snapshots`, ['search', 'volume', 'sort']],
      [`${at}/hosts`, ['search', 'sort']],
      [`${at}/publications`, ['volume', 'host']],
      [`${at}/buckets`, ['search', 'state', 'backend', 'condition', 'sort']],
      [`${at}/accesses`, ['search', 'bucket', 'authentication', 'sort']],
      [`${at}/tokens`, ['user']],
    ])('are in the address of %s, for whoever gets the link', async (path, names) => {
      const { page } = visitor;
      const picked = names.filter(name => PICKED.has(name));
      await visitor.go(`${path}?${picked.map(name => `${name}=${uuidv7()}`).join('&')}`);
      const fields = page.getByRole('search').locator('input:not([type=hidden]), select');
      expect(await fields.count()).toBe(names.length);
      for (const [n, name] of names.entries()) {
        const field = fields.nth(n);
        if (picked.includes(name)) continue;
        if (CHOSEN.has(name)) await field.selectOption({ index: 1 });
        else await field.fill(name === 'since' || name === 'until' ? '2026-01-02T03:04' : 'acme');
      }
      await page.waitForURL(url => names.every(name => url.searchParams.get(name)));
      const values = (): Promise<string[]> => fields.evaluateAll(all => all.map(({ value }) => value));
      const before = await values();
      const address = page.url();
      await page.goto('about:blank');
      const list = `/api/v1${path.replace('recycle-bin', 'volumes').replace('/all/', '/')}`;
      const asked = page.waitForRequest(request => {
        const { pathname, searchParams } = new URL(request.url());
        return pathname === list && names.every(name => searchParams.has(name));
      });
      await page.goto(address);
      await asked;
      await page.getByRole('button', { name: 'Clear filters' }).waitFor();
      expect(await values()).toEqual(before);
      await page.getByRole('button', { name: 'Clear filters' }).click();
      await page.waitForURL(url => url.search === '');
    });
  });

  it('lists what all tenants have, each with a link to its tenant', async () => {
    for (const tenant of [house.acme, house.beta]) await makeVolume(house, tenant, `shown-of-${tenant.name}`);
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.root.viewer, '/');
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'All volumes' }).click();
    for (const tenant of ['acme', 'beta']) {
      const row = page.getByRole('row').filter({ hasText: `shown-of-${tenant}` });
      await row.getByRole('link', { name: tenant, exact: true }).waitFor();
    }
    await page.getByRole('search').getByLabel('Tenant', { exact: true }).fill('beta');
    await page.getByRole('row').filter({ hasText: 'shown-of-acme' }).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'shown-of-beta' }).click();
    await page.waitForURL(/\/tenants\/beta\/volumes\//);
    const other = await visit();
    await other.logIn(house.acme.viewer, '/');
    await other.page.getByRole('link', { name: 'Volumes', exact: true }).waitFor();
    expect(await other.page.getByRole('link', { name: 'All volumes' }).count()).toBe(0);
  });

  it('exports the whole of a filtered list as CSV, page after page, and leaves off when told to', async () => {
    await house.query(
      `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes, thick,
                                  destroy_on_delete, description, config)
       SELECT $1, gen_random_uuid(), $2, 'export-' || lpad(n::text, 4, '0'), 'ready', '{}', 'x', 'main', '', 1024, false, false,
              '=1+1', '{}' FROM generate_series(1, 450) AS n`,
      [house.acme.id, house.acme.backends.local],
    );
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.acme.viewer, '/tenants/acme/volumes?search=export-');
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export as CSV' }).click();
    const file = await download;
    expect(file.suggestedFilename()).toBe('Volumes.csv');
    const text = readFileSync(await file.path(), 'utf8');
    const [head, ...lines] = text.trimEnd().split('\r\n');
    expect(head).toMatch(/^\ufeffid,name,backend,/);
    expect(lines).toHaveLength(450);
    expect(lines[449]).toContain(',export-0450,');
    expect(lines[0]).toContain(",'=1+1,");
    await page.getByText('450 rows exported').waitFor();

    // Its second page does not come: what was read so far is given up.
    const held = Promise.withResolvers<void>();
    await page.route('**/volumes?*cursor=*', async route => {
      await held.promise;
      await route.abort();
    });
    await page.getByRole('button', { name: 'Export as CSV' }).click();
    await page.getByText('200 rows read').waitFor();
    await page.getByRole('button', { name: 'Cancel the export' }).click();
    await page.getByText('Export cancelled').waitFor();
    held.resolve();
    await page.getByRole('button', { name: 'Export as CSV' }).waitFor();
    await house.query("DELETE FROM trivet.volume WHERE name LIKE 'export-%'");
  });

  it('filters by the name of a volume, and keeps its id in the address', async () => {
    const wanted = idOf(await makeVolume(house, house.acme, 'ledger'));
    await makeVolume(house, house.acme, 'archive');
    const body = { volume: wanted, name: 'of-the-ledger' };
    idOf(await house.call(house.acme.operator, 'POST', '/tenants/acme/snapshots', { body }));
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.acme.viewer, '/tenants/acme/snapshots');
    const field = page.getByRole('search').getByLabel('Volume', { exact: true }).first();
    await field.fill('ledg');
    const answer = Promise.withResolvers<void>();
    await page.route(`**/snapshots?*volume=${wanted}*`, async route => {
      await answer.promise;
      await route.continue();
    });
    await page.getByRole('option', { name: 'ledger' }).click();
    await page.waitForURL(url => url.searchParams.get('volume') === wanted);
    await page.locator('[aria-busy=true]').getByRole('link', { name: 'of-the-ledger' }).waitFor();
    expect(await visitor.barriers()).toEqual([]);
    answer.resolve();
    await page.locator('[aria-busy=false]').getByRole('link', { name: 'of-the-ledger' }).waitFor();
    expect(await visitor.barriers()).toEqual([]);
    await page.reload();
    await page.getByRole('link', { name: 'of-the-ledger' }).waitFor();
    await expect.poll(() => field.inputValue()).toBe('ledger');
  });

  it('can be worked with by the keyboard alone: from the login to a retry, a tenant and the way out', async () => {
    const visitor = await visit();
    const { page } = visitor;
    const { keyboard } = page;
    const { username, password } = house.root.admin;
    const link = (name: string | RegExp) => page.getByRole('link', { name, exact: true });
    const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true });
    await page.goto('/');
    await visitor.reach(page.getByRole('textbox', { name: 'User' }));
    await keyboard.type(username);
    await visitor.reach(page.getByRole('textbox', { name: 'Password' }));
    await keyboard.type(password);
    await keyboard.press('Enter');

    await visitor.enter(link(/^Stuck: /));
    await page.getByRole('heading', { name: 'Operations' }).waitFor();
    await visitor.reach(page.getByLabel('Resource', { exact: true }));
    await keyboard.type('held-3');
    await page.waitForURL(/resource=held-3/);
    await page.getByRole('row').filter({ hasText: 'held-4' }).waitFor({ state: 'detached' });
    await visitor.enter(link('bucket.delete'));

    const dialog = page.getByRole('dialog');
    const isWithin = (): Promise<boolean> => dialog.evaluate(box => box.contains(box.ownerDocument.activeElement));
    await visitor.enter(button('Retry now'));
    await dialog.waitFor();
    await expect.poll(isWithin).toBe(true);
    await visitor.reach(dialog.getByLabel('Reason'));
    // Round the dialog, and not out of it.
    for (let tab = 0; tab < 6; tab++) await keyboard.press('Tab');
    expect(await isWithin()).toBe(true);
    await keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Retry now');
    house.appliance.fake!.clearFaults();
    house.appliance.fake!.seedObjects('held-3', 0);
    await keyboard.press('Enter');
    await visitor.reach(dialog.getByLabel('Reason'));
    await keyboard.type('emptied');
    await keyboard.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
    await page.locator('.notice').getByText('succeeded').waitFor();

    await visitor.enter(button('Pause'));
    await page.getByText(/^Paused/).waitFor();
    await keyboard.press('Enter');
    await page.getByText('Live', { exact: true }).waitFor();

    await visitor.enter(link('Tenants'));
    await visitor.enter(button('New tenant'));
    await visitor.reach(dialog.getByLabel('Name'));
    await keyboard.type('by-keyboard');
    await keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Tenant by-keyboard' }).waitFor();

    await visitor.enter(button(`Account ${username}`));
    await page.getByRole('menuitem', { name: 'Password and account' }).waitFor();
    // The menu takes the focus once it has opened.
    const isInMenu = async (): Promise<unknown> => {
      await keyboard.press('ArrowDown');
      return page.evaluate('document.activeElement.getAttribute("role")');
    };
    await expect.poll(isInMenu).toBe('menuitem');
    await keyboard.press('End');
    await keyboard.press('Enter');
    await button('Log in').waitFor();
  });

  it('deletes those that were chosen in the recycle bin, and no others', async () => {
    const at = `/tenants/${house.acme.name}/volumes`;
    for (const name of ['one', 'two', 'kept', 'back']) {
      const id = idOf(await makeVolume(house, house.acme, `choice-${name}`));
      expect((await house.change(house.acme.admin, 'DELETE', `${at}/${id}`)).status).toBe(204);
    }
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.acme.admin, `/tenants/${house.acme.name}/recycle-bin`);
    const chosen = page.getByRole('button', { name: 'Delete chosen for good' });
    await page.getByRole('link', { name: 'choice-kept' }).waitFor();
    expect(await chosen.isDisabled()).toBe(true);
    for (const name of ['one', 'kept', 'two', 'back']) await page.getByLabel(`Choose choice-${name}`).check();
    await page.getByLabel('Choose choice-kept').uncheck();
    // Somebody else takes one of them back before it is confirmed.
    const [back] = await house.query<{ id: string }>("SELECT id FROM trivet.volume WHERE name = 'choice-back'");
    expect((await house.call(house.acme.admin, 'POST', `${at}/${back!.id}/restore`, { body: {} })).status).toBe(200);
    await page.getByRole('button', { name: 'Delete 3 for good' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('choice-one, choice-two, choice-back').waitFor();
    await dialog.getByLabel(`Type ${house.acme.name} to confirm`).fill(house.acme.name);
    await dialog.getByRole('button', { name: 'Delete 3 for good' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.getByRole('link', { name: 'choice-one' }).waitFor({ state: 'hidden' });
    expect(await chosen.isDisabled()).toBe(true);
    const states = await house.query<{ name: string; state: string }>(
      "SELECT name, state FROM trivet.volume WHERE name LIKE 'choice-%' AND state IN ('binned', 'ready') ORDER BY name",
    );
    expect(states).toEqual([
      { name: 'choice-back', state: 'ready' },
      { name: 'choice-kept', state: 'binned' },
    ]);
    expect(visitor.complaints).toEqual([]);
  });

  it.each([
    ['a desk', DESK],
    ['a phone', PHONE],
  ])('chooses rows by the keyboard at %s, and deletes them as one operation that says what stayed', async (_, look) => {
    const many = look === PHONE ? 'phone' : 'desk';
    const at = `/tenants/${house.acme.name}/volumes`;
    const ids = [];
    for (const n of [1, 2, 3, 4]) ids.push(idOf(await makeVolume(house, house.acme, `many-${many}-${n}`)));
    const snapshot = { body: { volume: ids[1], name: 'holds it' } };
    expect((await house.call(house.acme.admin, 'POST', '/tenants/acme/snapshots', snapshot)).status).toBe(201);
    const visitor = await browser.visit(house.appliance.cspUrl, look);
    visitors.push(visitor);
    const { page } = visitor;
    await visitor.logIn(house.acme.admin, `${at}?search=many-${many}`);
    await page.getByText('4 volumes, 32 MiB together').waitFor();
    await page.getByLabel(`Choose many-${many}-1`).focus();
    await page.keyboard.press('Space');
    await page.getByLabel(`Choose many-${many}-3`).focus();
    await page.keyboard.press('Shift+Space');
    const bar = page.getByRole('region', { name: 'What is chosen' });
    await bar.getByText('3 volumes chosen').waitFor();
    expect(await page.getByLabel(`Choose many-${many}-4`).isChecked()).toBe(false);
    expect(await visitor.barriers()).toEqual([]);
    expect(await visitor.overflow()).toBe(0);
    await bar.getByRole('button', { name: 'Choose all that match' }).click();
    await bar.getByText('4 volumes chosen, all that match').waitFor();
    await bar.getByRole('button', { name: 'Choose none' }).click();
    await bar.waitFor({ state: 'detached' });
    for (const n of [1, 2, 3]) await page.getByLabel(`Choose many-${many}-${n}`).check();
    await bar.getByRole('button', { name: 'Delete 3' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(`many-${many}-1, many-${many}-2, many-${many}-3.`).waitFor();
    expect(await dialog.getByRole('button', { name: 'Delete 3' }).isDisabled()).toBe(true);
    await dialog.getByLabel('Type 3 to confirm').fill('3');
    await dialog.getByRole('button', { name: 'Delete 3' }).click();
    await page.getByRole('heading', { name: 'bulk.run deletion of 3 volumes' }).waitFor();
    await page.getByText('3 of 3 ended, 1 failed, 2 done').waitFor();
    const failed = page.getByRole('row').filter({ hasText: `many-${many}-2` });
    await failed.getByText('which must go first').waitFor();
    expect(await visitor.barriers()).toEqual([]);
    expect(await visitor.overflow()).toBe(0);
    expect(visitor.complaints).toEqual([]);
  });

  it('shows the columns that were chosen, and keeps a view of them for its user', async () => {
    await makeVolume(house, house.acme, 'of-a-view');
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.acme.viewer, `/tenants/${house.acme.name}/volumes?search=of-a-view&sort=-size`);
    await page.getByRole('button', { name: 'Columns and views' }).click();
    const panel = page.getByRole('region', { name: 'Columns and views' });
    await panel.getByLabel('Protection').uncheck();
    await panel.getByLabel('Backend').uncheck();
    const heads = page.getByRole('table').getByRole('columnheader');
    await expect.poll(() => heads.allInnerTexts()).not.toContain('Backend');
    expect(await panel.getByLabel('Name', { exact: true }).isDisabled()).toBe(true);
    await panel.getByRole('button', { name: 'Save this one' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('few');
    await page.getByRole('dialog').getByRole('button', { name: 'Save it' }).click();
    await panel.getByRole('button', { name: 'few', exact: true }).waitFor();
    expect(await visitor.barriers()).toEqual([]);

    const other = await visit();
    await other.logIn(house.acme.viewer, `/tenants/${house.acme.name}/volumes`);
    await other.page.getByRole('button', { name: 'Columns and views' }).click();
    await other.page.getByRole('button', { name: 'few', exact: true }).click();
    await expect.poll(() => new URL(other.page.url()).searchParams.get('sort')).toBe('-size');
    expect(new URL(other.page.url()).searchParams.get('search')).toBe('of-a-view');
    const shown = other.page.getByRole('table').getByRole('columnheader');
    await expect.poll(() => shown.allInnerTexts()).not.toContain('Protection');
    await other.page.getByRole('button', { name: 'Rename' }).click();
    await other.page.getByRole('dialog').getByLabel('Name').fill('fewer');
    await other.page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click();
    await other.page.getByRole('button', { name: 'fewer', exact: true }).waitFor();
    expect([...visitor.complaints, ...other.complaints]).toEqual([]);
  });

  it('empties the recycle bin at once, by the tenant’s name', async () => {
    const at = `/tenants/${house.acme.name}/volumes`;
    const ids: string[] = [];
    for (const name of ['bin-1', 'bin-2', 'bin-3']) {
      ids.push(idOf(await makeVolume(house, house.acme, name)));
      expect((await house.change(house.acme.admin, 'DELETE', `${at}/${ids.at(-1)}`)).status).toBe(204);
    }
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.acme.admin, `/tenants/${house.acme.name}/recycle-bin`);
    await page.getByRole('link', { name: 'bin-3' }).waitFor();
    await page.getByRole('button', { name: 'Empty the recycle bin' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(`Type ${house.acme.name} to confirm`).fill(house.acme.name);
    await dialog.getByRole('button', { name: 'Empty the recycle bin' }).click();
    await page.getByText('The recycle bin is empty.').waitFor();
    const left = await house.query("SELECT FROM trivet.volume WHERE id = ANY ($1) AND state = 'binned'", [ids]);
    expect(left).toEqual([]);
  });
});

/** Looked for by name, with the id in the address. */
const PICKED: ReadonlySet<string> = new Set(['volume', 'host', 'bucket']);
const CHOSEN: ReadonlySet<string> = new Set(['state', 'stuck', 'condition', 'authentication', 'sort']);
