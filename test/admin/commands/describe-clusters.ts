import { expect, it } from 'vitest';
import { uuidv7 } from '#platform/uuid';
import type { CommandLine } from './command-line.js';

const OF_ACME = ['--tenant', 'acme'];

/** Clusters that have joined. */
export function describeClusters(line: CommandLine): void {
  const { run, trivet, json } = line;

  it('trivet cluster list, show, rotate and revoke', async () => {
    expect(await trivet(['cluster', 'list', ...OF_ACME])).toContain('trivet cluster join-token TENANT');
    await line.house.query(
      `INSERT INTO trivet.cluster (tenant_id, id, name, release, certificate_serial, certificate_until)
       VALUES ($1, $2, 'prod', '0.1.0', '0a', now() + interval '1 day')`,
      [line.house.acme.id, uuidv7()],
    );
    const row = /^prod +active +any +0\.1\.0 .* until \d{4}-/m;
    expect(await trivet(['cluster', 'list', ...OF_ACME])).toMatch(row);
    expect(await trivet(['cluster', 'show', 'prod', ...OF_ACME])).toMatch(/^endpoints +any of the tenant$/m);
    expect(await trivet(['cluster', 'rotate', 'prod', '--reason', 'a key was seen', ...OF_ACME])).toBe(
      'prod replaces its certificates: trivet cluster show prod\n',
    );
    expect(await json(['cluster', 'show', 'prod', ...OF_ACME])).toMatchObject({ rotateFrom: expect.any(String) });
    expect(await trivet(['cluster', 'revoke', 'prod', '--reason', 'it was stolen', ...OF_ACME])).toBe(
      'prod is revoked\n',
    );
    expect(await trivet(['cluster', 'show', 'prod', ...OF_ACME])).toMatch(/^state +revoked$/m);
    for (const args of [
      ['show', 'nobody'],
      ['revoke', 'nobody'],
      ['rotate', 'prod'],
    ])
      expect(await run(['cluster', ...args, ...OF_ACME]), args.join(' ')).toMatchObject({ code: 1, stdout: '' });
  });
}
