import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AdminHouse } from '#test/admin/admin-house';
import { chromiumPath, DESK, PHONE, TestBrowser, type Visitor } from '#test/dashboard/browser';
import { startHouse } from '#test/dashboard/dashboard-house';
import { type Furnished, furnish } from '#test/dashboard/page-paths';

/** Links among words are told by more than their colour: with data, with problems and with nothing to show. */
describe.skipIf(!chromiumPath())('links among words', () => {
  let house: AdminHouse;
  let browser: TestBrowser;
  let furnished: Furnished;
  let waiting: string;
  beforeAll(async () => {
    [house, browser] = await Promise.all([startHouse(), TestBrowser.launch()]);
    furnished = await furnish(house);
    waiting = await makeTrouble();
  });
  afterAll(async () => {
    await browser?.close();
    await house?.close();
  });

  /** A backend that is away, with an operation that waits for another one of its bucket. */
  async function makeTrouble(): Promise<string> {
    const { id: tenant, backends } = house.beta;
    await house.query(
      "UPDATE trivet.queue SET paused = true, changed_by = 'ann', reason = 'moving' WHERE class = 'copy'",
    );
    await house.query(
      `INSERT INTO trivet.backend_circuit (tenant_id, backend_id, failures, open_until, reason, opened_at, probed_at)
       VALUES ($1, $2, 3, now() + interval '1 hour', 'no answer', now(), now() + interval '1 hour')
       ON CONFLICT (tenant_id, backend_id) DO UPDATE
          SET open_until = excluded.open_until, reason = excluded.reason, probed_at = excluded.probed_at`,
      [tenant, backends.fake],
    );
    const [bucket, first, second] = [randomUUID(), randomUUID(), randomUUID()];
    for (const [seq, operation] of [first, second].entries()) {
      await house.query(
        `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name, request, state)
         VALUES ($1, $2, 'bucket.create', 'fast', $3, 'bucket', $4, 'held', '{}', 'pending')`,
        [tenant, operation, backends.fake, bucket],
      );
      await house.query(
        `INSERT INTO trivet.operation_slot (tenant_id, operation_id, resource_id, slot, own, seq, priority)
         VALUES ($1, $2, $3, 'lifecycle', true, $4, 0)`,
        [tenant, operation, bucket, seq],
      );
    }
    return second;
  }

  /** Where words stand around links; each page as it mostly is has its own test (usable-pages). */
  const pages = (): string[] => [
    '/',
    '/nowhere',
    '/audit',
    `/operations/${waiting}`,
    `/operations/${furnished.stuck}`,
    `/tenants/acme/volumes/${furnished.volume}`,
    ...['backends/fake', 'volumes', 'buckets', 'snapshots', 'recycle-bin'].map(path => `/tenants/beta/${path}`),
    `/tenants/acme/volumes/${randomUUID()}`,
  ];

  it.each([
    ['a desk', DESK],
    ['a phone', PHONE],
  ])(
    'are no puzzle at %s',
    async (_, look) => {
      const visitor = await browser.visit(house.appliance.cspUrl, look);
      await visitor.logIn(house.root.admin);
      const faults: string[] = [];
      const among: string[] = [];
      const looked = async () => {
        for (const scheme of ['light', 'dark'] as const) {
          await visitor.wear(scheme);
          faults.push(...(await visitor.barriers('link-in-text-block')));
        }
        among.push(...(await visitor.linksAmongWords()));
      };
      for (const path of pages()) {
        await visitor.go(path);
        await looked();
      }
      await refused(visitor);
      await looked();
      expect(faults).toEqual([]);
      // Else nothing was looked at: the way back, what the overview leads to, and what a refusal does.
      for (const words of ['overview', 'Show it', 'Show the operation'])
        expect(among.join()).toContain(`>${words}</a>`);
      await visitor.close();
    },
    120_000,
  );

  /** A dialog that was refused because of an operation, which it links to. */
  async function refused({ page, ...visitor }: Visitor): Promise<void> {
    await page.goto('/tenants/beta/backends/fake');
    await page.route('**/tenants/beta/backends/fake', async route => {
      if (route.request().method() !== 'PATCH') return route.continue();
      await route.fulfill({
        status: 409,
        contentType: 'application/problem+json',
        body: JSON.stringify({
          code: 'conflict',
          title: 'It is busy',
          detail: 'something else is under way',
          instance: '',
          operation: `/api/v1/operations/${waiting}`,
        }),
      });
    });
    await page.getByRole('button', { name: 'Cordon' }).click();
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /Cordon/ })
      .click();
    await page.getByRole('dialog').getByRole('link', { name: 'Show the operation' }).waitFor();
    expect(visitor.complaints).toEqual([]);
  }
});
