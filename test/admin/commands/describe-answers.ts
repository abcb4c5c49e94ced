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
      await trivet(['queue', 'pause', 'index', '--reason', 'until tomorrow']);
      await trivet(['endpoint', 'add', 'closed', '--tenant', 'acme', '--protocol', 'csi', '--group', 'no-such-group']);
      try {
        const ill = await examine();
        expect(ill).toMatchObject({ code: 1, ok: false });
        expect(ill.of('backend acme/fake')).toContainEqual(
          expect.objectContaining({ level: 'fail', remedy: expect.any(String) }),
        );
        expect(ill.of('worker')).toContainEqual(
          expect.objectContaining({ level: 'warn', detail: expect.stringContaining('another-host, pid 4711') }),
        );
        expect(ill.of('queue index')).toMatchObject([{ level: 'warn', remedy: 'trivet queue resume index' }]);
        expect(ill.of('socket acme/closed')).toMatchObject([{ level: 'fail', remedy: expect.any(String) }]);
      } finally {
        line.house.appliance.fake!.clearFaults();
        await trivet(['queue', 'resume', 'index']);
        await trivet(['endpoint', 'remove', 'closed', '--tenant', 'acme']);
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
        '  means   there is no such object, or not for you (not_found)',
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
      expect(misused.code).toBe(65);
      expect(refused.code).toBe(77);
      expect(nobody).toMatchObject({ code: 69, stderr: expect.stringContaining('does not answer: ECONNREFUSED') });
      expect(noAddress).toMatchObject({ code: 78, stderr: expect.stringContaining('TRIVET_ADMIN_URL') });
      expect(noToken).toMatchObject({ code: 78, stderr: expect.stringContaining('--token-file') });
      expect(elsewhere).toMatchObject({ code: 69, stderr: expect.stringContaining('TRIVET_HTTP_LISTEN') });
    });

    it('tell wrong use from what was refused, and help from both', async () => {
      const wrong: [string[], string][] = [
        [['tenant', 'list', '--colour'], "error: unknown option '--colour'"],
        [['tenant', 'create'], "error: missing required argument 'name'"],
        [['tenant', 'list', 'shop'], 'error: too many arguments'],
        [['operations', 'list', '--tenant'], "error: option '--tenant <name>' argument missing"],
        [['operation', 'list', '--state', 'done'], 'Allowed choices are pending, running'],
        [['prune', line.home], "error: required option '--keep <n>' not specified"],
        [['nothing-of-ours'], "error: unknown command 'nothing-of-ours'"],
        [['token'], 'Usage: trivet token'],
      ];
      const ended = await Promise.all(wrong.map(([args]) => run(args)));
      expect(ended).toMatchObject(
        wrong.map(([, said]) => ({ code: 65, stdout: '', stderr: expect.stringContaining(said) })),
      );
      const asked = await Promise.all([['--help'], ['--version'], ['tenant', 'list', '--help']].map(args => run(args)));
      expect(asked).toMatchObject(asked.map(() => ({ code: 0, stdout: expect.stringMatching(/./), stderr: '' })));
    });
  });
}
