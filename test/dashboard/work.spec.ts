import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { AdminHouse } from '#test/admin/admin-house';
import { idOf, makeVolume } from '#test/admin/resource-calls';
import { chromiumPath, DESK, type Look, PHONE_DARK, TestBrowser, type Visitor } from '#test/dashboard/browser';
import { makeStuck, startHouse } from '#test/dashboard/dashboard-house';
import { Relay } from '#test/dashboard/relay';

let house: AdminHouse;
let browser: TestBrowser;
let visitors: Visitor[] = [];

describe.skipIf(!chromiumPath())('operations in the page', () => {
  beforeAll(async () => {
    [house, browser] = await Promise.all([startHouse(), TestBrowser.launch()]);
  });
  afterEach(async () => {
    const done = visitors;
    visitors = [];
    house.appliance.fakeBlock!.clearFaults();
    house.appliance.fake!.clearFaults();
    await house.forgive();
    for (const visitor of done) await visitor.close();
  });
  afterAll(async () => {
    await browser?.close();
    await house?.close();
  });

  const visit = async (look: Look = DESK, url = house.appliance.cspUrl): Promise<Visitor> => {
    const visitor = await browser.visit(url, look);
    visitors.push(visitor);
    return visitor;
  };

  it('tells whoever has the wrong password what to do, and lets in who has the right one, where he wanted to go', async () => {
    const visitor = await visit();
    const { page } = visitor;
    await page.goto('/operations?state=failed');
    await page.getByRole('textbox', { name: 'User' }).fill(house.acme.viewer.username);
    await page.getByRole('textbox', { name: 'Password' }).fill('not this one');
    await page.getByRole('button', { name: 'Log in' }).click();
    const alert = page.getByRole('alert');
    await alert.getByText('What happened').waitFor();
    expect(await alert.textContent()).toMatch(/What it means[\s\S]*What to do[\s\S]*urn:uuid:/);
    expect(await visitor.barriers()).toEqual([]);
    await page.getByRole('textbox', { name: 'Password' }).fill(house.acme.viewer.password);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Operations' }).waitFor();
    expect(await page.getByLabel('State', { exact: true }).inputValue()).toBe('failed');
    // What a viewer may not do is not offered.
    await page.getByRole('link', { name: 'Volumes', exact: true }).click();
    await page.getByRole('heading', { name: 'Volumes' }).waitFor();
    expect(await page.getByRole('button', { name: 'New volume' }).count()).toBe(0);
    await page.getByRole('button', { name: `Account ${house.acme.viewer.username}` }).click();
    await page.getByRole('menuitem', { name: 'Log out' }).click();
    await page.getByRole('button', { name: 'Log in' }).waitFor();
  });

  it.each([
    ['at a desk', DESK],
    ['on a phone, dark', PHONE_DARK],
  ])('follows a running operation live, %s', async (where, look) => {
    const name = `slow-${where.length}`;
    const visitor = await visit(look);
    const { page } = visitor;
    await visitor.logIn(house.acme.operator, '/operations');
    await page.getByText('Live', { exact: true }).waitFor();
    house.appliance.fakeBlock!.addFault({ method: 'stage', mode: 'delay', delayMs: 5_000 });
    const made = await house.call(house.acme.operator, 'POST', '/tenants/acme/volumes', {
      body: { name, size: '8388608' },
      headers: { prefer: 'wait=0' },
    });
    expect(made.status).toBe(202);
    const row = page.getByRole('row').filter({ hasText: name });
    await row.getByText('running').waitFor();
    await row.getByRole('link', { name: 'volume.create' }).click();
    await page.getByRole('heading', { name: `volume.create ${name}` }).waitFor();
    await page.locator('main').getByText('running', { exact: false }).first().waitFor();
    expect(await page.getByRole('listitem').filter({ hasText: 'accepted' }).count()).toBe(1);
    // No reload, no click: it ends before the eyes.
    await page.locator('.notice').getByText('succeeded').waitFor();
    await page.getByRole('listitem').filter({ hasText: 'succeeded' }).waitFor();
    expect(await page.locator('.steps .current').count()).toBe(0);
    await page.getByRole('link', { name: `volume ${name}` }).click();
    await page.getByRole('heading', { name, exact: true }).waitFor();
    await page.getByRole('row').filter({ hasText: 'volume.create' }).getByText('succeeded').waitFor();
    expect(await visitor.barriers()).toEqual([]);
    expect(await visitor.overflow()).toBeLessThanOrEqual(0);
  });

  it('says why an operation is stuck, and tries it again when told so', async () => {
    const visitor = await visit();
    const { page } = visitor;
    await makeStuck(house, 'stuck-one');
    await visitor.logIn(house.root.admin);
    const attention = page.getByRole('region', { name: 'Needs attention' });
    await attention.getByText('What to do').first().waitFor();
    await page.getByRole('link', { name: /^Stuck: [1-9]/ }).click();
    await page.getByRole('row').filter({ hasText: 'stuck-one' }).getByRole('link', { name: 'bucket.delete' }).click();
    await page.getByText('needs attention').first().waitFor();
    const notice = page.locator('.notice').first();
    expect(await notice.textContent()).toMatch(/What happened[\s\S]*What it means[\s\S]*What to do/);
    const parked = page.getByRole('listitem').filter({ hasText: /^needs attention/ });
    await parked.getByText('failed_precondition: bucket stuck-one still holds objects').waitFor();
    expect(await parked.textContent()).not.toMatch(/[{}]|delay/);
    const attempt = page.getByRole('listitem').filter({ hasText: /^attempt/ });
    expect(await attempt.textContent()).toMatch(/worker: \S+, process \d+/);
    expect(await visitor.barriers()).toEqual([]);
    house.appliance.fake!.clearFaults();
    house.appliance.fake!.seedObjects('stuck-one', 0);
    await page.getByRole('button', { name: 'Retry now' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Reason').fill('the rights are back');
    expect(await visitor.barriers()).toEqual([]);
    await dialog.getByRole('button', { name: 'Retry now' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.locator('.notice').getByText('succeeded').waitFor();
    await page.goto('/audit?action=operation.retry');
    await page.getByText('the rights are back').waitFor();
  });

  it('leads from a stuck operation to the keys of its backend, which three clicks mend, and to its tenant', async () => {
    const visitor = await visit();
    const { page } = visitor;
    const stuck = await makeStuck(house, 'wrong-key');
    await visitor.logIn(house.root.admin, `/operations/${stuck}`);
    const details = page.getByRole('region', { name: 'Details' });
    await details.getByRole('link', { name: 'default', exact: true }).click();
    await page.getByRole('heading', { name: 'Tenant default' }).waitFor();
    await page.goBack();
    await page.evaluate("window.clicks = 0; document.addEventListener('click', () => window.clicks++, true)");
    await details.getByRole('link', { name: 'fake', exact: true }).click();
    await page.getByRole('button', { name: 'Change', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Change fake' });
    // Its keys are fields of this dialog, for each kind that has some.
    await dialog.getByLabel('Description').fill('with its new key');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'hidden' });
    expect(await page.evaluate('window.clicks')).toBe(3);
  });

  it('draws which hosts reach a volume and where it lies, in links and in words', async () => {
    const volume = idOf(await makeVolume(house, house.acme, 'on-the-way'));
    for (const [look, words] of [
      [DESK, 'No host may reach it'],
      [PHONE_DARK, 'It is reached by node-of-the-way'],
    ] as const) {
      const visitor = await visit(look);
      const { page } = visitor;
      await visitor.logIn(house.acme.admin, `/tenants/acme/volumes/${volume}`);
      const said = `${words}; it lies in the pool default of the backend local.`;
      const picture = page.getByRole('group', { name: said });
      await picture.waitFor();
      await page.getByText(said, { exact: true }).waitFor();
      expect(await visitor.barriers()).toEqual([]);
      expect(await visitor.overflow()).toBeLessThanOrEqual(0);
      if (look === DESK) {
        await visitor.enter(picture.getByRole('link', { name: 'Pool default' }));
        await page.getByRole('heading', { name: 'Backend local' }).waitFor();
        await publish(volume, 'node-of-the-way');
        await publish(volume, 'node-not-yet', 'wanted');
      } else {
        await visitor.enter(picture.getByRole('link', { name: 'Host node-of-the-way' }));
        await page.getByRole('heading', { name: 'node-of-the-way' }).waitFor();
      }
    }
  });

  /** As it stands in the database: nobody exports a volume of this house. */
  async function publish(volume: string, name: string, state = 'applied'): Promise<void> {
    await house.query(
      `WITH host AS (
         INSERT INTO trivet.host (tenant_id, id, uuid, name, iqns, wwpns, nqns, networks)
         VALUES ($1, gen_random_uuid(), $3, $3, ARRAY['iqn.2026-01.example:' || $3], '{}', '{}', '{}') RETURNING id
       )
       INSERT INTO trivet.publication (tenant_id, id, volume_id, host_id, access_protocol, state)
       SELECT $1, gen_random_uuid(), $2, id, 'iscsi', $4 FROM host`,
      [house.acme.id, volume, name, state],
    );
  }

  it('leads from what is said of findings to the findings', async () => {
    const message = 'volume orders-db has no image';
    await house.query(
      `INSERT INTO trivet.finding (tenant_id, backend_id, kind, subject, pool, message)
       VALUES ($1, $2, 'lost_image', 'volume orders-db', 'main', $3)`,
      [house.acme.id, house.acme.backends.local, message],
    );
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.acme.viewer);
    const attention = page.getByRole('region', { name: 'Needs attention' });
    const notice = attention.locator('.notice').filter({ hasText: '1 lost image at backend local' });
    await notice.getByRole('link').click();
    await page.getByRole('heading', { name: 'Backend local' }).waitFor();
    const row = page.getByRole('region', { name: 'Findings' }).getByRole('row').filter({ hasText: 'lost image' });
    await row.getByText(message).waitFor();
    expect(await visitor.barriers()).toEqual([]);
    await house.query("DELETE FROM trivet.finding WHERE subject = 'volume orders-db'");
  });

  it('leads from a volume to its backend, its template and what it is a clone of', async () => {
    const at = '/tenants/acme/volumes';
    const origin = idOf(await makeVolume(house, house.acme, 'origin'));
    const clone = await house.call(house.acme.operator, 'POST', at, {
      body: { name: 'copy-of-it', source: { volume: origin }, protectionTemplate: 'Retain-30Daily' },
    });
    expect(clone.body).toMatchObject({ cloneOf: 'origin' });
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.acme.viewer, `${at}/${idOf(clone)}`);
    const about = page.getByRole('region', { name: 'About' });
    await about.getByRole('link', { name: 'Retain-30Daily' }).click();
    await page.getByRole('heading', { name: 'Protection templates' }).waitFor();
    await page.goBack();
    await about.getByRole('link', { name: 'local', exact: true }).click();
    await page.getByRole('heading', { name: 'Backend local' }).waitFor();
    await page.goBack();
    await about.getByRole('link', { name: 'origin', exact: true }).click();
    await page.getByRole('heading', { name: 'Volumes' }).waitFor();
    await page.getByRole('link', { name: 'origin', exact: true }).click();
    await page.getByRole('heading', { name: 'origin', exact: true }).waitFor();
  });

  it('ends a stuck operation, or takes it from its worker, only by the name of its resource', async () => {
    const visitor = await visit();
    const { page } = visitor;
    const stuck = await makeStuck(house, 'given-up');
    await visitor.logIn(house.root.admin, `/operations/${stuck}`);
    await page.getByRole('button', { name: 'Resolve' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Reason').fill('the bucket stays');
    const resolve = dialog.getByRole('button', { name: 'Resolve' });
    expect(await resolve.isDisabled()).toBe(true);
    await dialog.getByLabel('Type given-up to confirm').fill('given-up');
    expect(await visitor.barriers()).toEqual([]);
    await resolve.click();
    await dialog.waitFor({ state: 'hidden' });
    await page
      .locator('.notice .badge')
      .filter({ hasText: /failed$/ })
      .waitFor();

    house.appliance.fakeBlock!.addFault({ method: 'stage', mode: 'hang' });
    const made = await house.call(house.acme.operator, 'POST', '/tenants/acme/volumes', {
      body: { name: 'held', size: '8388608' },
      headers: { prefer: 'wait=0' },
    });
    await page.goto(`/operations/${made.headers.location!.toString().split('/').at(-1)}`);
    await page.getByRole('button', { name: 'Release by force' }).click();
    await dialog.getByLabel('Reason').fill('its disk hangs');
    const release = dialog.getByRole('button', { name: 'Release by force' });
    expect(await release.isDisabled()).toBe(true);
    await dialog.getByLabel('Type held to confirm').fill('held');
    await release.click();
    await dialog.waitFor({ state: 'hidden' });
  });

  it('rests while it is paused, and catches up when it is resumed', async () => {
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.acme.operator, '/tenants/acme/volumes');
    await page.getByText('Live', { exact: true }).waitFor();
    await visitor.settled();
    await page.getByRole('button', { name: 'Pause' }).click();
    idOf(await makeVolume(house, house.acme, 'made-meanwhile'));
    await page.getByText(/^Paused, [1-9]\d* new$/).waitFor();
    expect(await page.getByText('made-meanwhile').count()).toBe(0);
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByRole('link', { name: 'made-meanwhile' }).waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
  });

  it('says that the connection is lost, and shows afterwards what happened meanwhile', async () => {
    const relay = await Relay.to(Number(new URL(house.appliance.cspUrl).port));
    try {
      const visitor = await visit(PHONE_DARK, relay.url);
      const { page } = visitor;
      await visitor.logIn(house.acme.operator, '/tenants/acme/volumes');
      await page.getByText('Live', { exact: true }).waitFor();
      relay.cut();
      await page.getByText('Connection lost, retrying').waitFor();
      expect(await visitor.overflow()).toBeLessThanOrEqual(0);
      idOf(await makeVolume(house, house.acme, 'made-in-the-dark'));
      relay.mend();
      await page.getByText('Live', { exact: true }).waitFor();
      await page.getByRole('link', { name: 'made-in-the-dark' }).waitFor();
    } finally {
      await relay.close();
    }
  });

  it('goes to the login when the session is ended elsewhere', async () => {
    const visitor = await visit();
    await visitor.logIn(house.beta.viewer, '/operations');
    await visitor.page.getByText('Live', { exact: true }).waitFor();
    const body = { state: 'disabled' };
    const changed = await house.change(house.root.admin, 'PATCH', '/tenants/beta/users/the-viewer', { body });
    expect(changed.status).toBe(200);
    await visitor.page.getByText('Your login has ended').waitFor();
  });
});
