import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { AdminHouse } from '#test/admin/admin-house';
import { idOf, makeVolume } from '#test/admin/resource-calls';
import { chromiumPath, DESK, type Look, PHONE_DARK, TestBrowser, type Visitor } from '#test/dashboard/browser';
import { startHouse } from '#test/dashboard/dashboard-house';

let house: AdminHouse;
let browser: TestBrowser;
let ledger: string;
const visitors: Visitor[] = [];

/** How somebody finds one thing among many: the orders of a list, and the one search. */
describe.skipIf(!chromiumPath())('finding things', () => {
  beforeAll(async () => {
    [house, browser] = await Promise.all([startHouse(), TestBrowser.launch()]);
    for (const [name, mib] of [
      ['ledger', 3],
      ['archive', 1],
      ['zebra', 2],
    ] as const) {
      const id = idOf(await makeVolume(house, house.acme, name, { size: String(mib * 1_048_576) }));
      if (name === 'ledger') ledger = id;
    }
    await makeVolume(house, house.beta, 'ledger-of-beta');
  });
  afterEach(async () => {
    for (const visitor of visitors.splice(0)) await visitor.close();
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
  const firstNames = (visitor: Visitor): Promise<string[]> =>
    visitor.page.locator('table tbody tr td:first-child').allTextContents();
  const inOrder = (visitor: Visitor, names: string[]): Promise<void> =>
    expect.poll(() => firstNames(visitor), { timeout: 20_000 }).toEqual(names);

  it('sorts a list by its heads, with the keyboard, and keeps the order in the address', async () => {
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.acme.viewer, '/tenants/acme/volumes');
    await inOrder(visitor, ['archive', 'ledger', 'zebra']);
    const head = (name: string) => page.getByRole('columnheader', { name });
    expect(await head('Name').getAttribute('aria-sort')).toBe('ascending');
    expect(await head('Size').getAttribute('aria-sort')).toBe('none');
    expect(await head('State').getAttribute('aria-sort')).toBeNull();
    await visitor.enter(page.getByRole('button', { name: 'Size' }));
    await page.waitForURL(/sort=-size/);
    await inOrder(visitor, ['ledger', 'zebra', 'archive']);
    expect(await head('Size').getAttribute('aria-sort')).toBe('descending');
    await page.keyboard.press('Enter');
    await inOrder(visitor, ['archive', 'zebra', 'ledger']);
    expect(await head('Size').getAttribute('aria-sort')).toBe('ascending');
    const address = page.url();
    await page.goto('about:blank');
    await page.goto(address);
    await inOrder(visitor, ['archive', 'zebra', 'ledger']);
    expect(await visitor.barriers()).toEqual([]);
    // Where the list begins anew, a place in the other order means nothing.
    await page.getByRole('button', { name: 'Name' }).click();
    await page.waitForURL(url => url.searchParams.get('sort') === null && url.searchParams.get('cursor') === null);
  });

  it('shows as many rows as one wants, and goes on behind them', async () => {
    await house.query(
      `INSERT INTO trivet.host (tenant_id, id, uuid, name, iqns, wwpns, nqns, networks)
       SELECT $1, gen_random_uuid(), 'u' || n, 'node-' || lpad(n::text, 3, '0'), '{}', '{}', '{}', '{}' FROM generate_series(1, 60) AS n`,
      [house.acme.id],
    );
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.acme.viewer, '/tenants/acme/hosts');
    await page.getByText('50 on this page').waitFor();
    await page.getByLabel('Rows on a page').selectOption('25');
    await page.getByText('25 on this page').waitFor();
    await page.getByRole('button', { name: 'Next page' }).click();
    await page.getByRole('link', { name: 'node-026' }).waitFor();
    expect(new URL(page.url()).searchParams.get('limit')).toBe('25');
    await page.getByLabel('Rows on a page').selectOption('200');
    await page.getByText('35 on this page').waitFor();
    await page.getByRole('link', { name: 'node-060' }).waitFor();
  });

  it('finds by the keyboard alone: / opens, arrows choose, Enter goes', async () => {
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.root.viewer, '/operations');
    await page.keyboard.press('/');
    const field = page.getByRole('combobox', { name: /Beginning of a name/ });
    await field.waitFor();
    await page.keyboard.type('ledger');
    const options = page.getByRole('listbox', { name: 'What was found' }).getByRole('option');
    await page.getByText('2 found: arrows and Enter').waitFor();
    expect(await options.nth(0).getAttribute('aria-selected')).toBe('true');
    expect(await visitor.barriers()).toEqual([]);
    await page.keyboard.press('ArrowDown');
    const second = await options.nth(1).getAttribute('id');
    expect(await field.getAttribute('aria-activedescendant')).toBe(second);
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/tenants\/beta\/volumes\//);
    await page.getByRole('heading', { level: 1, name: 'ledger-of-beta' }).waitFor();

    // While somebody types elsewhere a slash is a letter; Ctrl-K is none. Enter before the answer goes to the first of it.
    await visitor.go('/tenants/acme/volumes');
    const filter = page.getByRole('search').getByLabel('Name', { exact: true });
    await filter.fill('');
    await filter.press('/');
    expect(await filter.inputValue()).toBe('/');
    expect(await field.count()).toBe(0);
    await page.keyboard.press('Control+k');
    await field.waitFor();
    await page.keyboard.type(ledger);
    await page.keyboard.press('Enter');
    await page.waitForURL(new RegExp(`/tenants/acme/volumes/${ledger}$`));
  });

  it('says that nothing fits, gives a user of a tenant its own alone, and goes back where it was on Escape', async () => {
    const visitor = await visit(PHONE_DARK);
    const { page } = visitor;
    await visitor.logIn(house.acme.viewer, '/tenants/acme/volumes');
    const button = page.getByRole('button', { name: 'Search' });
    await visitor.enter(button);
    await page.getByRole('combobox', { name: /Beginning of a name/ }).waitFor();
    await page.keyboard.type('ledger');
    await page.getByText('1 found: arrows and Enter').waitFor();
    expect(await visitor.barriers()).toEqual([]);
    expect(await visitor.overflow()).toBeLessThanOrEqual(0);
    await page.keyboard.type('-of-beta');
    await page.getByText('Nothing that you may see fits').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await button.evaluate(element => element === element.ownerDocument.activeElement)).toBe(true);
    // Cards have no heads that could be pressed.
    expect(await page.locator('th button').count()).toBe(0);
  });
});
