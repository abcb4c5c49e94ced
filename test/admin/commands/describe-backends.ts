import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { until } from '#test/support/parts';
import { type CommandLine, rows } from './command-line.js';

/** What a tenant has: backends, sockets, volumes. */
export function describeBackends(line: CommandLine): void {
  const { run, trivet, json } = line;

  describe('trivet backend and endpoint', () => {
    it('show, test, cordon and take back what there is', async () => {
      const [fake] = rows(await trivet(['backend', 'list', '--tenant', 'acme'])).filter(([name]) => name === 'fake');
      expect(fake!.slice(0, 4)).toEqual(['fake', 'fake', 'active', expect.stringMatching(/^(up|unknown)$/)]);
      expect(await json(['backend', 'test', 'fake', '--tenant', 'acme'])).toMatchObject({ ok: true });
      expect(await trivet(['backend', 'cordon', 'fake', '--tenant', 'acme', '--reason', 'new disks'])).toMatch(
        /^fake is cordoned/,
      );
      expect(await json(['backend', 'drain', 'fake', '--tenant', 'acme'])).toMatchObject({ state: 'draining' });
      expect(await json(['backend', 'uncordon', 'fake', '--tenant', 'acme'])).toMatchObject({ state: 'active' });
      const [entry] = await line.house.query<{ reason: string }>(
        "SELECT reason FROM trivet.audit_entry WHERE action LIKE 'backend.%' AND reason IS NOT NULL ORDER BY seq DESC",
      );
      expect(entry?.reason).toBe('new disks');
    });

    it('register one with its keys from files, and forget it', async () => {
      const config = join(line.home, 'config.json');
      const credentials = { accessKeyId: 'AKIDOFTHECOMMANDLINE', secretAccessKey: 'secret-of-the-command-line' };
      writeFileSync(config, JSON.stringify({ endpoint: 'http://127.0.0.1:9', region: 'default' }));
      const args = ['backend', 'create', 'far', '--tenant', 'acme', '--kind', 'rgw'];
      const missing = await run(args);
      expect(missing).toMatchObject({ code: 65, stderr: expect.stringContaining('--config-file') });
      const broken = join(line.home, 'broken.json');
      writeFileSync(broken, '{"secretAccessKey": "not-to-be-shown');
      const refused = await run([...args, '--config-file', config, '--credentials-file', broken]);
      expect(refused.code).toBe(65);
      expect(refused.stderr).not.toContain('not-to-be-shown');

      const keys = join(line.home, 'keys.json');
      writeFileSync(keys, JSON.stringify(credentials));
      const tried = await run([...args, '--config-file', config, '--credentials-file', keys, '--dry-run']);
      expect(tried).toMatchObject({ code: 1, stdout: expect.stringMatching(/^fail {2}answers: .*127\.0\.0\.1:9/) });
      expect(await run(['backend', 'show', 'far', '--tenant', 'acme'])).toMatchObject({ code: 1 });
      const shared = await run(['backend', 'create', 'far', '--tenant', 'acme', '--share', 'x', '--dry-run']);
      expect(shared).toMatchObject({ code: 65, stderr: expect.stringContaining('trivet backend test') });

      const made = await json([...args, '--config-file', config, '--credentials-file', '-'], {
        input: JSON.stringify(credentials),
      });
      expect(made).toMatchObject({ name: 'far', kind: 'rgw', state: 'active' });
      expect(JSON.stringify(made)).not.toContain(credentials.secretAccessKey);
      const tested = await run(['backend', 'test', 'far', '--tenant', 'acme']);
      expect(tested).toMatchObject({ code: 1, stdout: expect.stringMatching(/^fail /m) });
      expect(await trivet(['backend', 'delete', 'far', '--tenant', 'acme'])).toBe('far is deleted\n');
    });

    it('say what each kind is configured by, and register one by its fields', async () => {
      expect(rows(await trivet(['backend', 'kinds'])).map(([kind]) => kind)).toEqual(
        expect.arrayContaining(['rgw', 'reflink', 'fake']),
      );
      const fields = rows(await trivet(['backend', 'kinds', 'reflink']));
      expect(fields.map(([name]) => name)).toEqual(
        expect.arrayContaining(['config.pools[].path', 'config.exporter.folder']),
      );
      expect(fields.map(([name]) => name)).not.toContain('config.pools[].within');
      expect(rows(await trivet(['backend', 'kinds', 'rgw']))).toContainEqual(
        expect.arrayContaining(['credentials.secretAccessKey', 'yes']),
      );
      expect(await run(['backend', 'kinds', 'tape'])).toMatchObject({ code: 65 });

      const add = ['backend', 'create', 'aside', '--tenant', 'acme', '--kind', 'fake'];
      const fake = [...add, '--set', `file=${join(line.home, 'aside.db')}`];
      const unwritten = await run([...fake, '--set', 'latencyMs=slow']);
      expect(unwritten).toMatchObject({ code: 65, stderr: expect.stringContaining('--set latencyMs') });
      const unknown = await run([...fake, '--set', 'colour=red']);
      expect(unknown).toMatchObject({
        code: 65,
        stderr: expect.stringContaining('config.colour: there is no such key'),
      });
      expect(await json([...fake, '--set', 'latencyMs=2', '--set', 'region=eu'])).toMatchObject({
        config: { file: join(line.home, 'aside.db'), latencyMs: 2, region: 'eu' },
      });
      expect(await trivet(['backend', 'delete', 'aside', '--tenant', 'acme'])).toBe('aside is deleted\n');
    });

    it('open a socket for a tenant, suspend it and remove it', async () => {
      const add = ['endpoint', 'create', 'k8s', '--tenant', 'acme', '--protocol', 'cosi'];
      expect(await run(add)).toMatchObject({ code: 65, stderr: expect.stringContaining('--backend') });
      const made = await json([...add, '--backend', 'fake', '--driver-name', 'acme.objects.example']);
      expect(made).toMatchObject({
        name: 'k8s',
        protocol: 'cosi',
        backend: 'fake',
        driverName: 'acme.objects.example',
      });
      expect(rows(await trivet(['endpoint', 'list', '--tenant', 'acme'])).map(([name]) => name)).toContain('k8s');
      expect(await trivet(['endpoint', 'suspend', 'k8s', '--tenant', 'acme'])).toBe('k8s is suspended\n');
      expect(await json(['endpoint', 'resume', 'k8s', '--tenant', 'acme'])).toMatchObject({ state: 'active' });
      expect(await trivet(['endpoint', 'delete', 'k8s', '--tenant', 'acme'])).toBe('k8s is deleted\n');
    });
  });

  describe('trivet volume list', () => {
    it('shows the volumes of a tenant', async () => {
      const { acme } = line.house;
      const made = await line.house.call(acme.operator, 'POST', '/tenants/acme/volumes', {
        body: { name: 'data', size: '1048576' },
        headers: { prefer: 'wait=30' },
      });
      expect(made.status).toBe(201);
      expect(await json(['volume', 'list', '--tenant', 'acme'])).toMatchObject({
        items: [{ id: made.body.id, name: 'data', size: '1048576', state: 'ready' }],
      });
      const [host, lost] = [randomUUID(), randomUUID()];
      await line.house.query(
        `INSERT INTO trivet.host (tenant_id, id, uuid, name, iqns, wwpns, nqns, networks)
         VALUES ($1, $2, 'host-uuid', 'node-a', '{iqn.1994-05.com.redhat:a}', '{}', '{}', '{}')`,
        [acme.id, host],
      );
      await line.house.query(
        `INSERT INTO trivet.publication (tenant_id, id, volume_id, host_id, access_protocol, state)
         VALUES ($1, $2, $3, $4, 'iscsi', 'applied')`,
        [acme.id, randomUUID(), made.body.id, host],
      );
      await line.house.query(
        `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes,
                                    thick, destroy_on_delete, description, config, condition)
         SELECT tenant_id, $2, backend_id, 'lost', 'ready', desired, fingerprint, pool, 'db', 2048, false, true, '', config, $3
           FROM trivet.volume WHERE id = $1`,
        [made.body.id, lost, JSON.stringify({ type: 'lost', message: 'its image is missing' })],
      );
      const shown = rows(await trivet(['volume', 'list'], { who: acme.viewer }));
      expect(shown).toEqual([
        ['data', '1 MiB', 'default', 'ready', 'node-a', '0', made.body.id],
        ['lost', '2 KiB', 'default/db', 'needs attention', '0', lost, 'its image is missing'],
      ]);
      expect(await trivet(['volume', 'list', '--limit', '1'], { who: acme.viewer })).toMatch(
        /^NAME.*\ndata .*\nthe first 1; --limit shows more\n$/,
      );
      const wrong = await json(['volume', 'list', '--condition'], { who: acme.viewer });
      expect(wrong.items.map(({ name }: { name: string }) => name)).toEqual(['lost']);
      expect(await trivet(['volume', 'list', '--search', 'nothing-like-it'], { who: acme.viewer })).toMatch(
        /^no volumes yet/,
      );
    });
  });

  it('trivet volume purge empties the recycle bin, and touches nothing beside it', async () => {
    const { acme } = line.house;
    const make = async (name: string) => {
      const made = await line.house.call(acme.operator, 'POST', '/tenants/acme/volumes', {
        body: { name, size: '1048576' },
        headers: { prefer: 'wait=30' },
      });
      return { id: made.body.id as string, etag: String(made.headers.etag) };
    };
    const [kept, one, two, three] = [await make('kept'), await make('p1'), await make('p2'), await make('p3')];
    for (const { id, etag } of [one, two, three]) {
      const headers = { 'if-match': etag, prefer: 'wait=30' };
      const deleted = await line.house.call(acme.admin, 'DELETE', `/tenants/acme/volumes/${id}`, { headers });
      expect(deleted.status).toBe(204);
    }
    const purge = (...args: string[]) => run(['volume', 'purge', '--tenant', 'acme', ...args]);
    expect(await purge(kept.id)).toMatchObject({
      code: 65,
      stderr: expect.stringMatching(/is not in the recycle bin/),
    });
    expect(await purge()).toMatchObject({ code: 65, stderr: expect.stringMatching(/or --all/) });
    expect(await trivet(['volume', 'purge', one.id, '--tenant', 'acme'])).toBe(
      `p1 (${one.id}) is being deleted for good\n`,
    );
    expect((await json(['volume', 'purge', '--all', '--tenant', 'acme'])).sort()).toEqual([two.id, three.id].sort());
    await until('they are gone', async () => {
      const gone = await line.house.query(`SELECT FROM trivet.volume WHERE id = ANY ($1) AND state = 'gone'`, [
        [one.id, two.id, three.id],
      ]);
      return gone.length === 3;
    });
    expect(await trivet(['volume', 'purge', '--all', '--tenant', 'acme'])).toBe('the recycle bin is empty\n');
    expect(await line.house.query('SELECT state FROM trivet.volume WHERE id = $1', [kept.id])).toEqual([
      { state: 'ready' },
    ]);
  });
}
