import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { until } from '#test/support/parts';
import { type CommandLine, MAIN, rows } from './command-line.js';

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;

/** Operations, their queues, and who did what. */
export function describeOperations(line: CommandLine): void {
  const { run, trivet, json } = line;

  describe('trivet operations', () => {
    const bucket = { name: 'stuck', protocols: [{ type: 'S3' }] };
    let parked: string;

    it('finds what is stuck, shows why, and follows it to its end after a retry', async () => {
      const { fake } = line.house.appliance;
      const client = line.house.appliance.client();
      fake!.addFault({ method: 'configureBucket', mode: 'fail-after', error: 'permission_denied', count: 1_000 });
      expect((await client.call('r1', 'DriverCreateBucket', bucket)).code).toBe('PERMISSION_DENIED');
      fake!.seedObjects('stuck', 1);
      await client.call('r1', 'DriverDeleteBucket', { bucket_id: 'stuck' });
      const list = ['operations', 'list', '--state', 'needs_attention', '--kind', 'bucket'];
      const { items } = await json(list);
      expect(items).toMatchObject([{ kind: 'bucket.delete', resource: { name: 'stuck' }, tenant: 'default' }]);
      parked = items[0].id;
      expect(rows(await trivet(list))[0]!.slice(0, 5)).toEqual([
        parked,
        'default',
        'bucket.delete',
        'stuck',
        'needs_attention',
      ]);

      const shown = await trivet(['operations', 'show', parked]);
      expect(shown).toMatch(/^state +needs_attention$/m);
      expect(shown).toContain(`trivet operations retry ${parked}`);
      expect(shown).toMatch(/^events:$/m);
      expect(await json(['operations', 'show', parked])).toMatchObject({
        id: parked,
        actions: expect.arrayContaining(['retry']),
      });

      const stopped = await run(['operations', 'watch', parked]);
      expect(stopped).toMatchObject({ code: 1, stdout: expect.stringContaining('needs_attention') });

      fake!.clearFaults();
      fake!.seedObjects('stuck', 0);
      expect(await trivet(['operations', 'retry', parked, '--reason', 'emptied'])).toBe(
        `${parked} runs again within seconds\n`,
      );
      expect(await trivet(['operations', 'watch', parked])).toMatch(/bucket\.delete stuck .* succeeded/);
      expect(await json(['operations', 'watch', parked])).toMatchObject({ id: parked, state: 'succeeded' });
    });

    it('does not wait for one that there is not', async () => {
      const id = randomUUID();
      const { code, stderr } = await run(['operations', 'watch', id]);
      expect(code).toBe(1);
      expect(stderr).toContain(`trivet: there is no operation ${id}\n`);
    });

    it('says what a state forbids, and that singular and plural are one command', async () => {
      for (const command of ['operations', 'operation']) {
        const { code, stderr } = await run([command, 'retry', parked]);
        expect(code).toBe(1);
        expect(stderr).toMatch(/^ {2}means {3}.*\(failed_precondition\)$/m);
        expect(stderr).toMatch(/^ {2}do {6}/m);
        expect(stderr).toMatch(new RegExp(`^ {2}quote {3}urn:uuid:${UUID.source}$`, 'm'));
      }
      expect((await run(['operations', 'cancel', parked])).stderr).toContain("required option '--reason <text>'");
    });

    it('shows live what happens, one line an event', async () => {
      const args = ['operations', 'watch', '--json'];
      const child = spawn(process.execPath, [MAIN, ...args], {
        env: line.environment(line.house.root.viewer),
        stdio: 'pipe',
      });
      let text = '';
      child.stdout.on('data', chunk => {
        text += String(chunk);
      });
      try {
        const client = line.house.appliance.client();
        let n = 0;
        // The stream begins with now, and says nothing until something happens.
        await until('an operation was seen to its end', async () => {
          await client.call('r1', 'DriverCreateBucket', { name: `live-${n++}`, protocols: [{ type: 'S3' }] });
          return text.includes('"succeeded"');
        });
        child.kill('SIGTERM');
        await once(child, 'exit');
        expect(child.exitCode).toBe(0);
      } finally {
        child.kill('SIGKILL');
      }
      const events = text
        .trim()
        .split('\n')
        .map(line => JSON.parse(line));
      expect(events.find(({ operation }) => operation?.state === 'succeeded')).toMatchObject({
        type: 'operation',
        tenant: 'default',
        operation: { kind: 'bucket.create', resource: { name: expect.stringMatching(/^live-/) } },
      });
    });
  });

  describe('trivet queue and audit', () => {
    it('pause and resume a class', async () => {
      expect((await run(['queue', 'pause', 'copy'])).stderr).toContain('--reason');
      expect(await trivet(['queue', 'pause', 'copy', '--reason', 'the pool is moved'])).toMatch(/^copy is paused: /);
      expect(rows(await trivet(['queue', 'list']))).toContainEqual(
        expect.arrayContaining(['copy', 'paused', 'the-admin@appliance (token house)', 'the pool is moved']),
      );
      expect(await json(['queue', 'resume', 'copy'])).toMatchObject({ class: 'copy', paused: false });
    });

    it('say who did what, and export all of it', async () => {
      const [newest] = rows(await trivet(['audit', '--action', 'queue.', '--limit', '1']));
      expect(newest).toEqual(expect.arrayContaining(['the-admin@appliance (token house)']));
      const exported = (await trivet(['audit', '--export'])).trim().split('\n');
      const [{ count }] = (await line.house.query<{ count: string }>('SELECT count(*) FROM trivet.audit_entry')) as [
        { count: string },
      ];
      expect(exported.length).toBe(Number(count));
      for (const line of exported) expect(JSON.parse(line)).toMatchObject({ actor: { name: expect.any(String) } });
    });
  });
}
