import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { until } from '#test/support/parts';
import { type CommandLine, rows } from './command-line.js';

/** Tenants with their quotas, and tokens of their people. */
export function describeTenants(line: CommandLine): void {
  const { run, trivet, json } = line;

  describe('trivet tenant', () => {
    it('makes, limits, suspends and deletes one', async () => {
      expect(await json(['tenant', 'create', 'shop', '--display-name', 'The Shop'])).toMatchObject({
        name: 'shop',
        displayName: 'The Shop',
        state: 'active',
      });
      expect(rows(await trivet(['tenant', 'list'])).map(([name]) => name)).toEqual(
        expect.arrayContaining(['acme', 'beta', 'shop']),
      );
      const quotas = await json(['tenant', 'quota', 'shop', 'volumes=10', 'volume_bytes=2T', 'streams=none']);
      expect(quotas).toMatchObject({
        volumes: { limit: '10', used: '0' },
        volume_bytes: { limit: String(2n << 40n) },
        streams: { limit: null },
      });
      expect(rows(await trivet(['tenant', 'quota', 'shop']))).toContainEqual([
        'volumes',
        '0',
        '10',
        '[····················] 0 %',
      ]);
      const wrong = ['volumes=ten', 'volumes=1G', 'cheese=1', 'volumes'];
      const refused = await Promise.all(wrong.map(limit => run(['tenant', 'quota', 'shop', limit])));
      expect(refused).toMatchObject(
        wrong.map(limit => ({ code: 65, stderr: expect.stringMatching(`^trivet: ${limit}: expected `) })),
      );

      expect(await trivet(['tenant', 'suspend', 'shop'])).toBe('shop is suspended\n');
      expect(await json(['tenant', 'list', '--state', 'suspended'])).toMatchObject({
        items: [{ name: 'shop' }],
        next: null,
      });
      expect(await json(['tenant', 'resume', 'shop'])).toMatchObject({ state: 'active' });

      const unconfirmed = await run(['tenant', 'delete', 'shop']);
      expect(unconfirmed).toMatchObject({ code: 65, stderr: 'trivet: repeat the name: --confirm shop\n' });
      expect((await run(['tenant', 'delete', 'shop', '--confirm', 'shp'])).stderr).toContain('nothing was deleted');
      expect(await trivet(['tenant', 'delete', 'shop', '--confirm', 'shop'])).toBe('shop is deleted\n');
      expect(await json(['tenant', 'list'])).not.toMatchObject({ items: expect.arrayContaining([{ name: 'shop' }]) });
    });
  });

  describe('trivet token', () => {
    it('gives whoever has a password a first token, in a file for him alone; revoked it is refused', async () => {
      const file = join(line.home, 'first-token');
      const { operator } = line.house.acme;
      const args = [
        'token',
        'create',
        'laptop',
        '--login',
        operator.username,
        '--password-file',
        '-',
        '--output',
        file,
      ];
      expect(await run(args, { input: 'a wrong password' })).toMatchObject({ code: 77 });
      expect(existsSync(file)).toBe(false);
      const said = await trivet(args, { input: `${operator.password}\n` });
      const secret = readFileSync(file, 'utf8').trim();
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(said).toBe(`token laptop of the-operator@acme, operator, is in ${file}\n`);
      expect((await run(args, { input: operator.password })).stderr).toContain('exists already');

      const own = { env: { TRIVET_ADMIN_TOKEN_FILE: file } };
      const { items } = await json(['token', 'list', '--user', 'the-operator'], own);
      const made = items.find(({ name }: { name: string }) => name === 'laptop');
      expect(made).toMatchObject({ user: 'the-operator@acme', role: 'operator', expiresAt: null });
      expect(JSON.stringify(items)).not.toContain(secret);
      expect(await trivet(['token', 'revoke', made.id], own)).toBe(`${made.id} is revoked\n`);
      await until('it is refused', async () => (await run(['token', 'list'], own)).code === 77);
    });

    it('is shown once, with its role and end', async () => {
      const made = await json([
        'token',
        'create',
        'ci',
        '--tenant',
        'acme',
        '--user',
        'the-viewer',
        '--expires-in-days',
        '7',
      ]);
      expect(made).toMatchObject({ name: 'ci', user: 'the-viewer@acme', role: 'viewer', token: expect.any(String) });
      expect(Date.parse(made.expiresAt) - Date.now()).toBeGreaterThan(6 * 86_400_000);
      expect(rows(await trivet(['token', 'list', '--tenant', 'acme'])).map(([name]) => name)).toContain('ci');
    });
  });
}
