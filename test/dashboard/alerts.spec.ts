import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { uuidv7 } from '#platform/uuid';
import type { AdminHouse } from '#test/admin/admin-house';
import { WebhookReceiver } from '#test/alerts/webhook-receiver';
import { chromiumPath, type Look, TestBrowser } from '#test/dashboard/browser';
import { startHouse } from '#test/dashboard/dashboard-house';
import { until } from '#test/support/parts';

const LOOKS: readonly Look[] = [
  { width: 390, height: 844, scheme: 'dark' },
  { width: 1024, height: 768, scheme: 'light' },
  { width: 1440, height: 900, scheme: 'dark' },
];

/** What is wrong with it names the alert. */
const park = (house: AdminHouse, error: string) =>
  house.query(
    `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name,
                                   request, state, error)
     VALUES ($1, $2, 'bucket.create', 'fast', $3, 'bucket', $4, $5, '{}', 'needs_attention', $6)`,
    [
      house.acme.id,
      uuidv7(),
      house.acme.backends.fake,
      uuidv7(),
      error,
      JSON.stringify({ kind: error, message: error, retry: 'person' }),
    ],
  );
const alertOf = async (house: AdminHouse, error: string) =>
  (await house.query("SELECT FROM trivet.alert WHERE state = 'open' AND object = $1", [`acme/fake/${error}`]))[0];

describe.skipIf(!chromiumPath())('alerts in the page', () => {
  let house: AdminHouse;
  let browser: TestBrowser;
  let receiver: WebhookReceiver;
  beforeAll(async () => {
    const env = { TRIVET_ALERT_NETWORKS: '127.0.0.0/8' };
    [house, browser, receiver] = await Promise.all([
      startHouse({ env }),
      TestBrowser.launch(),
      WebhookReceiver.start(),
    ]);
  });
  afterAll(async () => {
    await browser?.close();
    await receiver?.close();
    await house?.close();
  });

  it.each(LOOKS)(
    '$width wide: somebody is told, tested, and acknowledges and silences an alert',
    async look => {
      const object = `made-up-${look.width}`;
      const visitor = await browser.visit(house.appliance.cspUrl, look);
      const { page } = visitor;
      const faults: string[] = [];
      const dialog = page.getByRole('dialog');
      try {
        await visitor.logIn(house.root.admin, '/receivers');
        const name = `hook-${look.width}`;
        await page.getByRole('button', { name: 'New receiver' }).click();
        await dialog.getByLabel('Name').fill(name);
        await dialog.getByLabel('Address').fill('https://10.0.0.1/hook');
        await dialog.getByRole('button', { name: 'Make a secret' }).click();
        expect(await dialog.getByLabel('Signing secret').inputValue()).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
        faults.push(...(await visitor.barriers()));
        await dialog.getByRole('button', { name: 'Make it' }).click();
        await dialog
          .getByText(/must not be sent to/)
          .first()
          .waitFor();
        await dialog.getByLabel('Address').fill(receiver.url);
        await dialog.getByRole('button', { name: 'Make it' }).click();
        const made = page.getByRole('row').filter({ hasText: name });
        await made.getByRole('button', { name: 'Test' }).click();
        await dialog.getByRole('button', { name: 'Test' }).click();
        await dialog.getByText(`${name} took it.`).waitFor();
        await until('the test is there', () => receiver.received.find(({ body }) => body.alert.object === name));
        await dialog.getByRole('button', { name: 'Done' }).click();
        const wide = await visitor.overflow();
        if (wide > 0) faults.push(`/receivers is ${wide} px wider than the window`);

        await park(house, object);
        await until('the worker has seen it', () => alertOf(house, object), 60_000);
        await page.goto('/alerts');
        const row = page.getByRole('row').filter({ hasText: object });
        await row.getByRole('button', { name: 'Acknowledge' }).click();
        await dialog.getByLabel('Note').fill('on my way');
        faults.push(...(await visitor.barriers()));
        await dialog.getByRole('button', { name: 'Acknowledge' }).click();
        await row.getByText('acknowledged').waitFor();
        await row.getByRole('link').first().click();
        await page.getByText('on my way').waitFor();
        faults.push(...(await visitor.barriers()));
        await page.getByRole('button', { name: 'Silence' }).click();
        await dialog.getByLabel('Minutes').fill('30');
        await dialog.getByLabel('Reason').fill('it is being enlarged');
        await dialog.getByRole('button', { name: 'Silence' }).click();
        await dialog.waitFor({ state: 'hidden' });
        await page.goto('/silences');
        const silence = page.getByRole('row').filter({ hasText: object });
        await silence.getByRole('button', { name: 'End' }).click();
        await dialog.getByRole('button', { name: 'End' }).click();
        await silence.waitFor({ state: 'detached' });

        await page.goto('/receivers');
        await made.getByRole('button', { name: 'Delete' }).click();
        await dialog.getByLabel(`Type ${name} to confirm`).fill(name);
        await dialog.getByRole('button', { name: 'Delete' }).click();
        await made.waitFor({ state: 'detached' });
        expect(faults).toEqual([]);
      } finally {
        await visitor.close();
      }
    },
    150_000,
  );

  it('is not there for users of a tenant', async () => {
    const visitor = await browser.visit(house.appliance.cspUrl, LOOKS[1]!);
    await visitor.logIn(house.acme.admin, '/');
    expect(await visitor.page.getByRole('link', { name: 'Alerts' }).count()).toBe(0);
    await visitor.close();
  });
});
