import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PROBLEMS } from '#admin/problems/problems';
import { registry } from '#platform/metrics/metrics';
import { PACKAGE_ROOT } from '#platform/package-root';
import { AdminHouse } from '#test/admin/admin-house';
import { until } from '#test/support/parts';

/** What the API says of itself, to anybody. */
let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create();
});
afterAll(() => house?.close());

it('the document that is served is the one that is kept', async () => {
  const { status, body } = await house.call(undefined, 'GET', '/openapi.json');
  expect(status).toBe(200);
  expect(body).toEqual(JSON.parse(readFileSync(join(PACKAGE_ROOT, 'docs', 'openapi.json'), 'utf8')));
});

it('`type` of a problem leads to what to do', async () => {
  const { body } = await house.call(undefined, 'GET', '/tenants');
  const [path, anchor] = body.type.split('#');
  const page = await house.app.inject({ method: 'GET', url: path });
  expect(page.statusCode).toBe(200);
  expect(page.headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': expect.stringContaining("default-src 'none'"),
    'x-content-type-options': 'nosniff',
  });
  expect(anchor).toBe('unauthenticated');
  for (const code of Object.keys(PROBLEMS)) expect(page.body).toContain(`id="${code}"`);
});

it('calls are measured by the pattern of their path, and by no name in it', async () => {
  const measured = () => registry.getSingleMetricAsString('trivet_admin_call_duration_seconds');
  await house.call(undefined, 'GET', '/canary');
  await house.call(undefined, 'GET', '/tenants/canary/volumes/canary');
  const labels = 'method="GET",route="/api/v1/tenants/:tenant/volumes/:volume",code="401"';
  await until('the call is measured', async () => (await measured()).includes(labels));
  expect(await measured()).not.toContain('canary');
});
