import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { driverOf, registerBucket } from '#test/admin/resource-calls';
import { type CommandLine, rows } from './command-line.js';

const OF_ACME = ['--tenant', 'acme'];

/** Who has what: hosts with their publications, and buckets. */
export function describeHosts(line: CommandLine): void {
  const { run, trivet, json } = line;

  it('trivet publication and host show who has which volume, end that, and forget the host', async () => {
    const { id: volume } = await json(['volume', 'create', 'mounted', '--size', '1MiB', ...OF_ACME]);
    const { blockStorage } = line.house.parts;
    const host = {
      uuid: 'uuid-b',
      name: 'node-b',
      iqns: ['iqn.2026-01.org.example:b'],
      wwpns: [],
      nqns: [],
      networks: [],
    };
    await blockStorage.hosts.put(await driverOf(line.house, line.house.acme), host);
    const published = { host: 'uuid-b', accessProtocol: 'iscsi' } as const;
    await blockStorage.publications.publish(await driverOf(line.house, line.house.acme), volume, published);

    const shown = await trivet(['host', 'show', 'node-b', ...OF_ACME]);
    expect(shown).toMatch(/^initiators +iqn\.2026-01\.org\.example:b$/m);
    expect(shown).toMatch(/^has +1 volumes: trivet publication list --host /m);
    const list = ['publication', 'list', '--host', 'node-b', '--volume', 'mounted', ...OF_ACME];
    expect(rows(await trivet(list))[0]!.slice(0, 4)).toEqual(['mounted', 'node-b', 'iscsi', 'applied']);
    const [{ id }] = (await json(list)).items;
    expect(await run(['host', 'delete', 'node-b', ...OF_ACME])).toMatchObject({ code: 1, stdout: '' });
    expect(await run(['publication', 'delete', id, ...OF_ACME])).toMatchObject({
      code: 65,
      stderr: expect.stringContaining('the publication of volume mounted to host node-b ends'),
    });
    expect(await run(['publication', 'delete', 'not-an-id', '--yes', ...OF_ACME])).toMatchObject({ code: 65 });
    expect(await run(['publication', 'list', '--host', 'absent', ...OF_ACME])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no host absent'),
    });
    expect(await trivet(['publication', 'delete', id, '--yes', ...OF_ACME])).toBe(`${id} is ended\n`);
    expect((await json(list)).items).toEqual([]);
    expect(await trivet(['host', 'delete', 'node-b', ...OF_ACME])).toBe('node-b is deleted\n');
    expect(await run(['host', 'show', 'node-b', ...OF_ACME])).toMatchObject({ code: 1 });
    await trivet(['volume', 'delete', 'mounted', '--yes', ...OF_ACME]);
  });

  it('trivet host create and publication create give a machine a volume', async () => {
    const volume = await json(['volume', 'create', 'by-hand', '--size', '1MiB', ...OF_ACME]);
    const host = ['host', 'create', 'machine', '--iqn', 'iqn.2026-01.org.example:machine'];
    const unsaid = await run([...host, '--chap-user', 'machine', ...OF_ACME]);
    expect(unsaid).toMatchObject({ code: 65, stderr: expect.stringContaining('come together') });
    const made = await trivet([...host, '--chap-user', 'machine', '--chap-password-file', '-', ...OF_ACME], {
      input: 'canary-of-chap\n',
    });
    expect(made).toMatch(/^machine \([0-9a-f-]{36}\) is known; next: trivet publication create/);
    const published = await trivet(['publication', 'create', 'by-hand', 'machine', ...OF_ACME]);
    expect(published).toMatch(/^portals +[^ ]+:\d+$/m);
    expect(published).not.toContain('canary-of-chap');
    const [{ id }] = (await json(['publication', 'list', '--volume', 'by-hand', ...OF_ACME])).items;
    expect(await trivet(['publication', 'show', id, ...OF_ACME])).toBe(published);
    expect(await run(['publication', 'create', 'by-hand', 'machine', ...OF_ACME])).toMatchObject({ code: 1 });
    await trivet(['publication', 'delete', id, '--yes', ...OF_ACME]);
    await trivet(['host', 'delete', 'machine', ...OF_ACME]);
    await trivet(['volume', 'delete', volume.id, '--yes', ...OF_ACME]);
  });

  it('trivet bucket shows one and lets it go; without --yes it says what goes', async () => {
    const id = await registerBucket(line.house, line.house.acme, 'photos', 3);
    const shown = await trivet(['bucket', 'show', 'photos', ...OF_ACME]);
    expect(shown).toMatch(/^origin +registered$/m);
    expect(await json(['bucket', 'show', id, ...OF_ACME])).toMatchObject({ id, name: 'photos' });
    const unsaid = await run(['bucket', 'delete', 'photos', ...OF_ACME]);
    expect(unsaid).toMatchObject({ code: 65, stderr: expect.stringContaining('is let go, and stays at fake') });
    expect(await run(['bucket', 'show', 'absent', ...OF_ACME])).toMatchObject({
      code: 1,
      stderr: 'trivet: there is no bucket absent in tenant acme (trivet bucket list --tenant acme)\n',
    });
    expect(await trivet(['bucket', 'delete', 'photos', '--yes', ...OF_ACME])).toBe('photos is deleted\n');
  });

  it('trivet bucket create and access issue give a program a key, into a file alone', async () => {
    const made = await json([
      'bucket',
      'create',
      'letters',
      '--backend',
      'fake',
      '--set',
      'versioning=true',
      ...OF_ACME,
    ]);
    expect(made).toMatchObject({ name: 'letters', state: 'ready', parameters: { versioning: 'true' } });
    expect(await run(['bucket', 'create', 'letters', '--backend', 'fake', ...OF_ACME])).toMatchObject({ code: 1 });
    const issue = (name: string, ...more: string[]) => ['access', 'issue', name, ...more, ...OF_ACME];
    const file = join(line.home, 'letters.key');
    const issued = await trivet(issue('letters-app', '--bucket', 'letters=read_write', '--output', file));
    expect(issued).toMatch(/^letters-app \([0-9a-f-]{36}\) is granted; its key is in /);
    const key = JSON.parse(readFileSync(file, 'utf8'));
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(issued).not.toContain(key.secretAccessKey);
    const [{ id }] = (await json(['access', 'list', '--search', 'letters-app', ...OF_ACME])).items;
    expect(await json(['access', 'key', id, '--reason', 'lost', ...OF_ACME])).toEqual({ id, key });
    expect(await trivet(['access', 'show', id, ...OF_ACME])).toMatch(/^key +trivet access key shows it$/m);
    for (const [given, said] of [
      [['--bucket', 'letters=all'], 'there are read_write'],
      [['--bucket', 'absent=read_only'], 'there is no bucket absent'],
      [['--bucket', 'letters=read_only', '--rotate-grace', '60'], '--rotate-after'],
    ] as const)
      expect(await run(issue('x', ...given))).toMatchObject({ stdout: '', stderr: expect.stringContaining(said) });
    await trivet(['access', 'revoke', id, '--reason', 'done', ...OF_ACME]);
    await trivet(['bucket', 'delete', 'letters', '--yes', ...OF_ACME]);
  });
}
