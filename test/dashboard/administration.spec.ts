import { hostname } from 'node:os';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { readJoinToken } from '#platform/crypto/join-token';
import type { AdminHouse } from '#test/admin/admin-house';
import { grantOn, poolsSeen, sidecarOf } from '#test/admin/resource-calls';
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
import { type History, makeHistory, startHouse } from '#test/dashboard/dashboard-house';
import { makeCluster } from '#test/dashboard/page-paths';
import { freePort } from '#test/support/free-port';
import { TestProvider } from '#test/support/identity-provider';
import { parts } from '#test/support/parts';

let house: AdminHouse;
let browser: TestBrowser;
let provider: TestProvider;
let visitors: Visitor[] = [];

describe.skipIf(!chromiumPath())('administration in the page', () => {
  beforeAll(async () => {
    const port = await freePort();
    provider = await TestProvider.start(`http://127.0.0.1:${port}`);
    [house, browser] = await Promise.all([startHouse({ port, env: provider.env }), TestBrowser.launch()]);
  });
  afterEach(async () => {
    const done = visitors;
    visitors = [];
    for (const visitor of done) await visitor.close();
  });
  afterAll(async () => {
    await browser?.close();
    await house?.close();
    await provider?.close();
  });

  const visit = async (look: Look = DESK): Promise<Visitor> => {
    const visitor = await browser.visit(house.appliance.cspUrl, look);
    visitors.push(visitor);
    return visitor;
  };

  it('logs in whom the provider knows, once they are linked, and goes on where it was', async () => {
    const visitor = await visit();
    const { page } = visitor;
    const byProvider = page.getByRole('button', { name: 'Log in with Test ID' });
    await page.goto('/tenants/acme/users?from=a-friend');
    await byProvider.click();
    await page.waitForURL(`${provider.issuer}/interaction/**`);
    await page.locator('input[name="login"]').fill('ann-1');
    await page.locator('input[name="password"]').fill('any');
    await page.locator('button[type="submit"]').click();
    // Nobody knows her yet.
    const alert = page.getByRole('alert');
    await alert.waitFor();
    expect(await alert.textContent()).toMatch(/Test ID knows you[\s\S]*What to do[\s\S]*Ask whoever runs/);
    expect(page.url()).toBe(`${provider.publicUrl}/tenants/acme/users?from=a-friend`);
    expect(await visitor.barriers()).toEqual([]);

    const office = await visit();
    await office.logIn(house.root.admin, '/tenants/acme/users');
    const row = office.page.getByRole('row').filter({ hasText: house.acme.viewer.username });
    await row.getByRole('button', { name: 'Change' }).click();
    const dialog = office.page.getByRole('dialog');
    await dialog.getByLabel('Subject at Test ID').fill('ann-1');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'hidden' });

    await byProvider.click();
    await page.getByRole('button', { name: `Account ${house.acme.viewer.username}` }).waitFor();
    expect(page.url()).toBe(`${provider.publicUrl}/tenants/acme/users?from=a-friend`);
    await page.getByRole('heading', { name: 'Users' }).waitFor();
    expect(await page.getByRole('button', { name: 'New user' }).count()).toBe(0);
  });

  it('changes the key of an access, which is let in beside the next for a day', async () => {
    const sidecar = await sidecarOf(house, house.acme);
    const { storage } = house.parts;
    await storage.buckets.create(sidecar, { name: 'photos', protocols: ['s3'], parameters: {} });
    const { value } = await grantOn(storage, sidecar, 'photos-writer', 'photos');
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.root.admin, '/tenants/acme/accesses');
    await page.getByRole('link', { name: 'photos-writer' }).click();
    await page.getByRole('button', { name: 'Change key' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox').fill('somebody left');
    await dialog.getByRole('button', { name: 'Change key' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.getByText(/ends in (23 h|1 d)/).waitFor();
    const again = await grantOn(storage, sidecar, 'photos-writer', 'photos');
    expect(again.value.credentials.accessKeyId).not.toBe(value.credentials.accessKeyId);
    expect(await page.content()).not.toContain(again.value.credentials.secretAccessKey);
    expect((await house.audit('access.rotate')).map(({ reason }) => reason)).toEqual(['somebody left']);
  });

  it('makes a tenant, gives it a quota, and sees it refuse', async () => {
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.root.admin, '/tenants');
    await page.getByRole('button', { name: 'New tenant' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('shop');
    await dialog.getByLabel('Shown as').fill('The shop');
    await dialog.getByRole('button', { name: 'Make it' }).click();
    await page.getByRole('heading', { name: 'Tenant shop' }).waitFor();
    // Its backend and people, as an operations team would add them by the command line.
    const shop = await house.tenant('shop');
    await poolsSeen(house, shop);

    await page.getByRole('button', { name: 'Set quotas' }).click();
    await dialog.getByLabel('Volumes', { exact: true }).fill('1');
    await dialog.getByLabel('Bytes of volumes').fill('1 GiB');
    expect(await visitor.barriers()).toEqual([]);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.getByText('0 of 1, 0 %').waitFor();
    await page.getByText('of 1 GiB').waitFor();

    await page.getByRole('link', { name: 'Volumes', exact: true }).click();
    const make = async (name: string): Promise<void> => {
      await page.getByRole('button', { name: 'New volume' }).click();
      await dialog.getByLabel('Name').fill(name);
      await dialog.getByRole('textbox', { name: 'Size' }).fill('8 MiB');
      await dialog.getByRole('button', { name: 'Make it' }).click();
    };
    await make('first');
    await page.getByRole('link', { name: 'first', exact: true }).waitFor();
    await make('second');
    const alert = dialog.getByRole('alert');
    await alert.waitFor();
    expect(await alert.textContent()).toMatch(/quota[\s\S]*What it means[\s\S]*What to do[\s\S]*urn:uuid:/i);
    expect(await visitor.barriers()).toEqual([]);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await page.goto('/tenants/shop');
    const meter = page.getByRole('meter', { name: 'Quota of volumes', exact: true });
    expect(await meter.getAttribute('aria-valuenow')).toBe('100');
  });

  it.each([
    ['at a desk', DESK],
    ['on a phone', PHONE],
  ])('suspends a tenant only by its whole name, %s', async (_, look) => {
    const visitor = await visit(look);
    const { page } = visitor;
    await visitor.logIn(house.root.admin, '/tenants/beta');
    await page.getByRole('button', { name: 'Suspend' }).click();
    const dialog = page.getByRole('dialog');
    const suspend = dialog.getByRole('button', { name: 'Suspend' });
    expect(await suspend.isDisabled()).toBe(true);
    await dialog.getByLabel('Type beta to confirm').fill('bet');
    expect(await suspend.isDisabled()).toBe(true);
    await page.keyboard.type('a');
    expect(await visitor.barriers()).toEqual([]);
    await page.keyboard.press('Enter');
    await page.getByText('It is suspended').waitFor();
    expect(
      (await fetch(`${house.appliance.cspUrl}/api/v1/tenants/beta/volumes`, bearer(house.beta.admin.token))).status,
    ).toBe(403);
    await page.getByRole('button', { name: 'Resume' }).last().click();
    await dialog.getByRole('button', { name: 'Resume' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.getByText('It is suspended').waitFor({ state: 'hidden' });
  });

  it('shows a token once, and revokes it by its name', async () => {
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.acme.admin, '/tenants/acme/tokens');
    await page.getByRole('button', { name: 'New token' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('backup-job');
    await dialog.getByLabel('User').selectOption('the-viewer');
    await dialog.getByRole('button', { name: 'Make it' }).click();
    await dialog.getByText('the only time').waitFor();
    const token = (await dialog.locator('code').textContent())!;
    expect(token).toMatch(/^trivet_/);
    const asked = await fetch(`${house.appliance.cspUrl}/api/v1/session`, bearer(token));
    expect(await asked.json()).toMatchObject({ username: 'the-viewer@acme', token: 'backup-job', role: 'viewer' });
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.reload();
    const row = page.getByRole('row').filter({ hasText: 'backup-job' });
    await row.waitFor();
    expect(await page.content()).not.toContain(token);
    await row.getByRole('button', { name: 'Revoke' }).click();
    await dialog.getByLabel('Type backup-job to confirm').fill('backup-job');
    await dialog.getByRole('button', { name: 'Revoke' }).click();
    await row.waitFor({ state: 'detached' });
  });

  it('lets a cluster in, shows what its connectors carry, rotates and revokes it', async () => {
    await makeCluster(house, 'prod');
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.acme.admin, '/tenants/acme/clusters');
    await page.getByRole('button', { name: 'Let a cluster in' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('stage');
    await dialog.getByLabel('Endpoints').fill('buckets, blocks');
    await dialog.getByRole('button', { name: 'Make it' }).click();
    await dialog.getByText('the only time').waitFor();
    const token = (await dialog.locator('code').textContent())!;
    expect(readJoinToken(token)).toBeDefined();
    const [stored] = await house.query<{ endpoints: string[] }>(
      "SELECT endpoints FROM trivet.cluster_join_token WHERE cluster_name = 'stage'",
    );
    expect(stored?.endpoints).toEqual(['buckets', 'blocks']);
    await dialog.getByRole('button', { name: 'Done' }).click();

    const row = page.getByRole('row').filter({ hasText: 'prod' });
    await row.getByRole('list', { name: 'Connectors of prod' }).getByText('test 2 connections').waitFor();
    await row.getByRole('link', { name: '2', exact: true }).waitFor();
    expect(await visitor.barriers()).toEqual([]);
    await row.getByRole('button', { name: 'Rotate' }).click();
    await dialog.getByRole('button', { name: 'Rotate' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await row.getByRole('button', { name: 'Revoke' }).click();
    await dialog.getByLabel('Type prod to confirm').fill('prod');
    await dialog.getByRole('button', { name: 'Revoke' }).click();
    await row.getByText('revoked').waitFor();
    expect(await row.getByRole('button').count()).toBe(0);
    const [kept] = await house.query<{ rotated: boolean }>(
      "SELECT rotate_from IS NOT NULL AS rotated FROM trivet.cluster WHERE name = 'prod' AND revoked_at IS NOT NULL",
    );
    expect(kept).toEqual({ rotated: true });

    const looks = await visit();
    await looks.logIn(house.acme.viewer, '/tenants/acme/clusters');
    await looks.page.getByRole('row').filter({ hasText: 'prod' }).waitFor();
    expect(await looks.page.getByRole('button', { name: 'Let a cluster in' }).count()).toBe(0);
  });

  it('finds a tenant among many by a few letters, by the keyboard, and is not misled by an answer that comes late', async () => {
    await house.query(
      `INSERT INTO trivet.tenant (id, name, display_name)
       SELECT gen_random_uuid(), 'many-' || n, '' FROM generate_series(100, 399) AS n
       UNION ALL SELECT gen_random_uuid(), 'zz-last', 'Zoo of the north'`,
    );
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.root.admin, '/tenants/acme/volumes');
    const switcher = page.getByRole('combobox', { name: 'Tenant' });
    expect(await switcher.inputValue()).toBe('acme');
    let answerLate = (): void => {};
    const late = new Promise<void>(resolve => {
      answerLate = resolve;
    });
    const held = page.waitForRequest(/tenants\?search=o&/);
    await page.route(/tenants\?search=o&/, async route => {
      await late;
      await route.continue().catch(() => {});
    });
    await switcher.focus();
    await page.keyboard.type('o');
    await held;
    // What was found before does not stand there as if it matched.
    await page.getByText('Searching', { exact: true }).waitFor();
    expect(await page.locator('[role=option]').count()).toBe(0);
    await page.keyboard.type('f the nor');
    const option = page.getByRole('option', { name: 'zz-last, Zoo of the north' });
    await option.waitFor();
    expect(await visitor.barriers()).toEqual([]);
    answerLate();
    await page.unroute(/tenants\?search=o&/);
    expect(await page.locator('[role=option]').count()).toBe(1);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/tenants/zz-last/volumes');
    await page.getByText('No volume matches').waitFor();
    await expect.poll(() => switcher.inputValue()).toBe('zz-last');
    await switcher.focus();
    await page.keyboard.type('many-39');
    await page.getByRole('option', { name: 'many-399' }).waitFor();
    await switcher.fill('nobody');
    await page.getByText('No tenant matches').waitFor();
    await page.keyboard.press('Escape');
    await page.waitForURL('**/tenants/zz-last/volumes');
  });

  it.each([
    ['at a desk', DESK],
    ['on a phone, dark', PHONE_DARK],
  ])(
    'registers a backend by its fields, says which are wrong, and never shows its keys again, %s',
    async (where, look) => {
      const secret = `canary-of-the-form-${where.length}`;
      const name = `objects-${where.length}`;
      const visitor = await visit(look);
      const { page } = visitor;
      await visitor.logIn(house.root.admin, '/tenants/beta/backends');
      await page.getByRole('button', { name: 'Add a backend' }).click();
      const dialog = page.getByRole('dialog');
      const field = (label: string) => dialog.getByRole('textbox', { name: label, exact: true });
      await field('Name').fill(name);
      await dialog.getByLabel('Kind').selectOption('rgw');
      await field('Endpoint').fill('ftp://127.0.0.1');
      await field('RGW tenant').fill('no such-name');
      await field('Access key').fill('AKIDOFTHEFORM');
      const key = dialog.locator('input[name="/credentials/secretAccessKey"]');
      expect(await key.getAttribute('type')).toBe('password');
      await key.fill(secret);
      const register = dialog.getByRole('button', { name: 'Register it' });
      await register.click();
      await dialog.getByRole('alert').waitFor();
      for (const [label, wrong] of [
        ['Endpoint', true],
        ['RGW tenant', true],
        ['Region', false],
      ] as const)
        expect([label, await field(label).getAttribute('aria-invalid')]).toEqual([label, wrong ? 'true' : null]);
      expect(await visitor.barriers()).toEqual([]);
      expect(await visitor.overflow()).toBeLessThanOrEqual(0);
      await field('Endpoint').fill('http://127.0.0.1:1/');
      await field('RGW tenant').fill('');
      await dialog.getByRole('button', { name: 'Test', exact: true }).click();
      await dialog.getByText('It cannot be used as it is.').waitFor();
      await dialog.getByRole('cell', { name: /cannot be reached.*127\.0\.0\.1:1/ }).waitFor();
      expect(await visitor.barriers()).toEqual([]);
      expect(await visitor.overflow()).toBeLessThanOrEqual(0);
      expect((await house.call(house.root.admin, 'GET', `/tenants/beta/backends/${name}`)).status).toBe(404);
      // An answer about another key goes with the first letter, before the field is left.
      await key.focus();
      await page.keyboard.press('End');
      await page.keyboard.type('x');
      await dialog.getByText('It cannot be used as it is.').waitFor({ state: 'hidden' });
      await page.keyboard.press('Backspace');
      expect(await key.inputValue()).toBe(secret);
      await register.click();
      await dialog.waitFor({ state: 'hidden' });
      await page.getByRole('link', { name }).click();
      await page.getByRole('heading', { name: `Backend ${name}` }).waitFor();
      const read = async () => (await house.call(house.root.admin, 'GET', `/tenants/beta/backends/${name}`)).body;
      expect((await read()).config).toEqual({ endpoint: 'http://127.0.0.1:1', region: 'default', rgwTenant: '' });
      const sealed = () =>
        house.query(
          'SELECT s.sealed FROM trivet.secret s JOIN trivet.backend b ON b.id = s.owner_id WHERE b.name = $1',
          [name],
        );
      const before = await sealed();
      expect(before).toHaveLength(1);

      await page.getByRole('button', { name: 'Change' }).click();
      expect(await field('Endpoint').inputValue()).toBe('http://127.0.0.1:1');
      expect(await key.inputValue()).toBe('');
      expect(await page.content()).not.toContain(secret);
      await field('Region').fill('eu');
      await dialog.getByRole('button', { name: 'Save' }).click();
      await dialog.waitFor({ state: 'hidden' });
      expect((await read()).config).toEqual({ endpoint: 'http://127.0.0.1:1', region: 'eu', rgwTenant: '' });
      expect(await sealed()).toEqual(before);
    },
  );

  it('registers pools of files: as many as wanted, and the fields of the exporter that is chosen', async () => {
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.root.admin, '/tenants/beta/backends');
    await page.getByRole('button', { name: 'Add a backend' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Name', exact: true }).first().fill('files');
    await dialog.getByLabel('Kind').selectOption('reflink');
    const pool = (n: number) => dialog.getByRole('group', { name: `Pool ${n}` });
    const path = (of: string) => `${house.appliance.folder}/not-there/${of}`;
    await dialog.getByRole('button', { name: 'Add a pool' }).click();
    await pool(1).getByRole('textbox', { name: 'Name', exact: true }).fill('slow');
    await pool(2).getByRole('textbox', { name: 'Name', exact: true }).fill('fast');
    await pool(2).getByRole('textbox', { name: 'Path' }).fill('relative');
    await pool(2).getByRole('textbox', { name: 'Portals', exact: true }).fill('127.0.0.1:3999\n127.0.0.2:3999');
    await pool(2).getByLabel('Hosts without CHAP').check();
    await pool(1).getByRole('button', { name: 'Remove' }).click();
    await dialog.getByRole('textbox', { name: 'Folder' }).fill('/run/of-no-use');
    expect(await visitor.barriers()).toEqual([]);
    const register = dialog.getByRole('button', { name: 'Register it' });
    await register.click();
    await pool(1).getByText('expected an absolute path').waitFor();
    await pool(1).getByRole('textbox', { name: 'Path' }).fill(path('fast'));
    await dialog.getByLabel('Exporter').selectOption({ label: 'none: volumes reach no host' });
    expect(await dialog.getByRole('textbox', { name: 'Folder' }).count()).toBe(0);
    await register.click();
    await dialog.waitFor({ state: 'hidden' });
    const { body } = await house.call(house.root.admin, 'GET', '/tenants/beta/backends/files');
    const portals = ['127.0.0.1:3999', '127.0.0.2:3999'];
    expect(body.config).toEqual({
      pools: [{ name: 'fast', path: path('fast'), portals, sharePortals: [], withoutChap: true }],
      addresses: [],
      exporter: { kind: 'none' },
    });
  });

  it('says who changed it meanwhile, instead of overwriting that', async () => {
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.root.admin, '/tenants/acme');
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Rename' }).waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    const body = { displayName: 'Acme of somebody else' };
    await house.change(house.root.admin, 'PATCH', '/tenants/acme', { body });
    await page.getByRole('button', { name: 'Rename' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Shown as').fill('Acme of mine');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByRole('alert').getByText('your change was not made').waitFor();
  });

  it('pauses a class of operations with a reason, by its name', async () => {
    const visitor = await visit(DESK_DARK);
    const { page } = visitor;
    await visitor.logIn(house.root.admin, '/workers');
    const row = page.getByRole('row').filter({ hasText: 'copies of data' });
    await row.getByRole('button', { name: 'Pause' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Reason').fill('the pool is being moved');
    await dialog.getByLabel('Type copy to confirm').fill('copy');
    await dialog.getByRole('button', { name: 'Pause' }).click();
    await row.getByText('the pool is being moved').waitFor();
    await page.goto('/');
    await page.getByRole('region', { name: 'Needs attention' }).getByText('copy').first().waitFor();
    await page.goto('/workers');
    await row.getByRole('button', { name: 'Resume' }).click();
    await dialog.getByRole('button', { name: 'Resume' }).click();
    await row.getByText('active').waitFor();
  });

  it('shows storage hosts, and what to do about those that are silent', async () => {
    await house.query(
      `INSERT INTO trivet.storage_host (name, named, machine, release, seen_at)
       SELECT name, true, name, '1.2.3', now() - interval '1 minute' FROM unnest(ARRAY['node-full', 'node-empty']) AS name`,
    );
    await house.query("INSERT INTO trivet.pool_home VALUES ($1, $2, 'away', 'node-full')", [
      house.acme.id,
      house.acme.backends.local,
    ]);
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.root.viewer, '/workers');
    const table = page.getByRole('table', { name: 'Storage hosts' });
    const row = (text: string | RegExp) => table.getByRole('row').filter({ hasText: text });
    await row('node-full').getByText('Start its worker again').waitFor();
    expect(await row('node-full').textContent()).toMatch(/down.*TRIVET_HOST=node-full.*1\.2\.3/);
    expect(await row('node-empty').textContent()).toMatch(/down.*forgotten after a day/);
    const own = row(hostname());
    expect(await own.textContent()).toContain('up');
    expect(await own.textContent()).not.toMatch(/Start its worker|forgotten/);
    await house.query("SELECT trivet.storage_host_beat('node-full', true, 'node-full', '1.2.4', NULL, 0)");
    await row(/node-full.*up.*1\.2\.4/).waitFor();
    expect(await table.getByRole('button').count()).toBe(0);

    const admin = await visit();
    const at = admin.page;
    await admin.logIn(house.root.admin, '/workers');
    const hosts = (text: string | RegExp) =>
      at.getByRole('table', { name: 'Storage hosts' }).getByRole('row').filter({ hasText: text });
    await hosts('node-full').getByRole('button', { name: 'Drain' }).click();
    const dialog = at.getByRole('dialog');
    await dialog.getByLabel('Reason').fill('the machine goes');
    await dialog.getByRole('button', { name: 'Drain' }).click();
    await dialog.getByText(/away: 0 volumes.*trivet pool move away --tenant acme/).waitFor();
    await dialog.getByRole('button', { name: 'Done' }).click();
    await hosts(/node-full.*away: 0 volumes.*draining.*the machine goes/).waitFor();

    await at.goto('/tenants/acme/backends/local');
    const pool = at.getByRole('table', { name: 'Pools' }).getByRole('row').nth(1);
    const name = await pool.getByRole('cell').first().textContent();
    await pool.getByRole('button', { name: 'Move' }).click();
    await dialog.getByLabel('Storage host').selectOption('node-empty');
    await dialog.getByLabel('I have made sure that it is off').check();
    await dialog.getByLabel('Reason').fill('its disk went');
    await dialog.getByLabel(`Type ${name} to confirm`).fill(name!);
    await dialog.getByRole('button', { name: 'Move it' }).click();
    await dialog
      .getByRole('alert')
      .getByText(/node-empty is silent since/)
      .waitFor();

    await at.goto('/workers');
    await hosts('node-full').getByRole('button', { name: 'Take back' }).click();
    await dialog.getByRole('button', { name: 'Take back' }).click();
    await hosts('node-full').getByRole('button', { name: 'Drain' }).waitFor();
    await house.query("DELETE FROM trivet.pool_home WHERE host = 'node-full'");
    await house.query("DELETE FROM trivet.storage_host WHERE name LIKE 'node-%'");
  });

  it('lets nobody outside of a tenant see it', async () => {
    const visitor = await visit();
    const { page } = visitor;
    await visitor.logIn(house.acme.admin, '/tenants/beta/volumes');
    await page.getByRole('alert').getByText('There is no such object').waitFor();
    expect(await page.getByRole('link', { name: 'Workers and queues' }).count()).toBe(0);
    expect(await page.getByLabel('Tenant', { exact: true }).count()).toBe(0);
  });

  describe.skipIf(!parts().xfs)('the changed-block map', () => {
    let history: History;
    beforeAll(async () => {
      history = await makeHistory(house);
    });

    it.each([
      ['at a desk', DESK],
      ['on a phone', PHONE],
    ])('shows where a volume changed, as a picture and as a table, %s', async (_, look) => {
      const visitor = await visit(look);
      const { page } = visitor;
      const [monday, , wednesday] = history.snapshots;
      await visitor.logIn(house.acme.viewer, `/tenants/acme/volumes/${history.volume}`);
      await page.getByRole('link', { name: 'wednesday', exact: true }).click();
      await page.getByLabel('Compare with').selectOption(monday!);
      await page.waitForURL(new RegExp(`snapshots/${wednesday}\\?base=${monday}`));
      const map = page.getByRole('img', { name: /changed since monday/ });
      await map.waitFor();
      const changed = await map.locator('rect:not(.cell-0)').count();
      expect(changed).toBeGreaterThan(50);
      expect(changed).toBeLessThan(400);
      await map.focus();
      await page.keyboard.press('End');
      await page.getByText(/^Cell 1024 of 1024, from .* to 64 MiB: 0 % changed since monday/).waitFor();
      await page.keyboard.press('ArrowUp');
      await page.getByText(/^Cell 960 of 1024/).waitFor();
      expect(await visitor.barriers()).toEqual([]);
      await page.getByText('Table', { exact: true }).click();
      const table = page.getByRole('table', { name: /changed since monday/ });
      expect(await table.getByRole('row').count()).toBeGreaterThan(3);
      const growth = page.getByRole('table', { name: 'Growth of each increment' });
      expect(await growth.getByRole('row').count()).toBe(4);
      await growth.getByRole('row').filter({ hasText: 'monday' }).getByText('the first', { exact: true }).waitFor();
      expect(await visitor.barriers()).toEqual([]);
      expect(await visitor.overflow()).toBeLessThanOrEqual(0);
    });
  });
});

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
