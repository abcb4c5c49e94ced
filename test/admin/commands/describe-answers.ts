import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { freePort } from '#test/support/free-port';
import type { CommandLine } from './command-line.js';

/** What the doctor says of a running appliance, and how commands fail. */
export function describeAnswers(line: CommandLine): void {
  const { run, trivet } = line;

  describe('trivet doctor', () => {
    const settings = ['TRIVET_DATABASE_URL', 'TRIVET_DATABASE_ENGINE_URL', 'TRIVET_KEK_FILE'];
    const examine = async () => {
      const { env } = line.house.appliance;
      const given = Object.fromEntries(settings.map(name => [name, env[name]!]));
      const { code, stdout } = await run(['doctor', '--json'], { env: given });
      const { ok, findings } = JSON.parse(stdout) as { ok: boolean; findings: Record<string, string>[] };
      return { code, ok, of: (name: string) => findings.filter(finding => finding.name === name) };
    };

    it('asks through the API for each backend, socket, worker and queue', async () => {
      const well = await examine();
      expect(well.of('backend acme/fake')).toMatchObject([{ level: 'ok' }]);
      expect(well.of('worker')).toMatchObject([{ level: 'ok', detail: '1 up' }]);
      expect(well.of('periodic tasks')).toMatchObject([{ level: 'ok' }]);
      expect(well.of('schema')).toMatchObject([{ level: 'ok' }]);

      line.house.appliance.fake!.addFault({
        method: 'health',
        mode: 'fail-before',
        error: 'unavailable',
        count: 1_000,
      });
      line.house.appliance.fake!.addFault({
        method: 'diagnose',
        mode: 'fail-before',
        error: 'unavailable',
        count: 1_000,
      });
      await line.house.query(
        `INSERT INTO trivet.worker (id, host, pid, version, concurrency, seen_at)
         VALUES (gen_random_uuid(), 'another-host', 4711, '0.1.0', 1, now() - interval '1 hour')`,
      );
      await line.house.query(
        "UPDATE trivet.worker SET started_at = now() - interval '1 day' WHERE host <> 'another-host'",
      );
      const hourly = (succeeded: string, error: string | null) =>
        line.house.query(
          "UPDATE trivet.periodic_task SET succeeded_at = now() - $1::interval, error = $2 WHERE name = 'gone-resources'",
          [succeeded, error],
        );
      await hourly('1 day', 'error EIO');
      await trivet(['queue', 'pause', 'index', '--reason', 'until tomorrow']);
      await trivet([
        'endpoint',
        'create',
        'closed',
        '--tenant',
        'acme',
        '--protocol',
        'csi',
        '--group',
        'no-such-group',
      ]);
      try {
        const ill = await examine();
        expect(ill).toMatchObject({ code: 1, ok: false });
        expect(ill.of('backend acme/fake')).toContainEqual(
          expect.objectContaining({ level: 'fail', remedy: expect.any(String) }),
        );
        expect(ill.of('worker')).toContainEqual(
          expect.objectContaining({ level: 'warn', detail: expect.stringContaining('another-host, pid 4711') }),
        );
        expect(ill.of('periodic task')).toMatchObject([
          { level: 'warn', detail: expect.stringMatching(/^gone-resources: no success since .*, error EIO$/) },
        ]);
        expect(ill.of('queue index')).toMatchObject([{ level: 'warn', remedy: 'trivet queue resume index' }]);
        expect(ill.of('socket acme/closed')).toMatchObject([{ level: 'fail', remedy: expect.any(String) }]);
      } finally {
        line.house.appliance.fake!.clearFaults();
        await hourly('0 s', null);
        await trivet(['queue', 'resume', 'index']);
        await trivet(['endpoint', 'delete', 'closed', '--tenant', 'acme']);
        await line.house.query("DELETE FROM trivet.worker WHERE host = 'another-host'");
      }
    });
  });

  describe('errors and exit codes', () => {
    it('say what happened, what it means, what to do, and what to quote', async () => {
      const { code, stderr, stdout } = await run(['tenant', 'suspend', 'nobody']);
      expect(code).toBe(1);
      expect(stdout).toBe('');
      expect(stderr.split('\n')).toEqual([
        'trivet: there is no tenant nobody',
        '  means   There is no such object (not_found)',
        expect.stringMatching(/^ {2}do {6}./),
        expect.stringMatching(/^ {2}quote {3}urn:uuid:/),
        '',
      ]);
    });

    it('tell a script what it can do about it', async () => {
      const { acme } = line.house;
      const wrongToken = join(line.home, 'wrong-token');
      writeFileSync(wrongToken, 'trivet_nothing\n');
      const nowhere = `http://127.0.0.1:${await freePort()}`;
      const [forbidden, misnamed, misused, refused, nobody, noAddress, noToken, elsewhere] = await Promise.all([
        run(['tenant', 'create', 'x'], { who: acme.admin }),
        run(['tenant', 'create', 'Not A Name']),
        run(['tenant', 'list', '--limit', 'many']),
        run(['tenant', 'list', '--token-file', wrongToken]),
        run(['tenant', 'list', '--url', nowhere]),
        run(['tenant', 'list'], { env: { TRIVET_ADMIN_URL: '' } }),
        run(['tenant', 'list'], { env: { TRIVET_ADMIN_TOKEN_FILE: '' } }),
        run(['tenant', 'list', '--url', `${line.house.appliance.cspUrl}/elsewhere`]),
      ]);
      expect(forbidden.code).toBe(77);
      expect(misnamed).toMatchObject({ code: 65, stderr: expect.stringContaining('expected 1 to 63 of a-z') });
      expect(misused.code).toBe(2);
      expect(refused.code).toBe(77);
      expect(nobody).toMatchObject({ code: 69, stderr: expect.stringContaining('does not answer: ECONNREFUSED') });
      expect(noAddress).toMatchObject({ code: 78, stderr: expect.stringContaining('TRIVET_ADMIN_URL') });
      expect(noToken).toMatchObject({ code: 78, stderr: expect.stringContaining('--token-file') });
      expect(elsewhere).toMatchObject({ code: 69, stderr: expect.stringContaining('TRIVET_HTTP_LISTEN') });
    });

    it('say of a gateway that does not answer what goes without it, and only there', async () => {
      const nowhere = ['--url', `http://127.0.0.1:${await freePort()}`];
      const hint = /\n {2}or {6}trivet operation list --offline: straight to the database, without a gateway\n$/;
      const [silent, unknown, without, refused] = await Promise.all([
        run(['operation', 'list', ...nowhere]),
        run(['operation', 'list'], { env: { TRIVET_ADMIN_URL: '' } }),
        run(['tenant', 'list', ...nowhere]),
        run(['operation', 'retry', randomUUID()]),
      ]);
      expect(silent).toMatchObject({ code: 69, stderr: expect.stringMatching(hint) });
      expect(silent.stderr).toContain('does not answer: ECONNREFUSED');
      expect(unknown).toMatchObject({ code: 78, stderr: expect.stringMatching(hint) });
      expect(without.code).toBe(69);
      for (const { stderr } of [without, refused]) expect(stderr).not.toContain('--offline');
    });

    it('tell wrong use from what was refused, and help from both', async () => {
      const wrong: [string[], string][] = [
        [['tenant', 'list', '--colour'], 'trivet tenant list: unknown option --colour; it takes --state, '],
        [['tenant', 'create'], 'trivet tenant create: <name> is missing'],
        [['operation', 'list', '--tenant'], 'trivet operation list: --tenant needs a value'],
        [['operations', 'list'], 'trivet: `trivet operations list` is now `trivet operation list`'],
        [['nothing-of-ours'], 'trivet: there is no command nothing-of-ours'],
        [['token'], 'trivet token: say what; it takes list, create, rotate, revoke'],
        [[], 'trivet: say what to do; `trivet help` lists what there is'],
      ];
      const ended = await Promise.all(wrong.map(([args]) => run(args)));
      expect(ended).toMatchObject(
        wrong.map(([, said]) => ({ code: 2, stdout: '', stderr: expect.stringContaining(said) })),
      );
      for (const { stderr } of ended) expect(stderr.trim().split('\n')).toHaveLength(1);
      const help = [['--help'], ['--version'], ['help', 'tenant'], ['tenant', '--help'], ['tenant', 'list', '--help']];
      const asked = await Promise.all([...help, ['completion', 'bash']].map(args => run(args)));
      expect(asked).toMatchObject(asked.map(() => ({ code: 0, stdout: expect.stringMatching(/./), stderr: '' })));
    });
  });
}
