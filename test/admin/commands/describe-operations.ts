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

  describe('trivet operation', () => {
    const bucket = { name: 'stuck', protocols: [{ type: 'S3' }] };
    let parked: string;

    it('finds what is stuck, shows why, and follows it to its end after a retry', async () => {
      const { fake } = line.house.appliance;
      const client = line.house.appliance.client();
      fake!.addFault({ method: 'configureBucket', mode: 'fail-after', error: 'permission_denied', count: 1_000 });
      expect((await client.call('r1', 'DriverCreateBucket', bucket)).code).toBe('PERMISSION_DENIED');
      fake!.seedObjects('stuck', 1);
      await client.call('r1', 'DriverDeleteBucket', { bucket_id: 'stuck' });
      const list = ['operation', 'list', '--state', 'needs_attention', '--kind', 'bucket'];
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

      const shown = await trivet(['operation', 'show', parked]);
      expect(shown).toMatch(/^state +needs_attention$/m);
      expect(shown).toContain(`trivet operation retry ${parked}`);
      expect(shown).toMatch(/^events:$/m);
      expect(await json(['operation', 'show', parked])).toMatchObject({
        id: parked,
        actions: expect.arrayContaining(['retry']),
      });

      const stopped = await run(['operation', 'watch', parked]);
      expect(stopped).toMatchObject({ code: 1, stdout: expect.stringContaining('needs_attention') });

      fake!.clearFaults();
      fake!.seedObjects('stuck', 0);
      expect(await trivet(['operation', 'retry', parked, '--reason', 'emptied'])).toBe(
        `${parked} runs again within seconds\n`,
      );
      expect(await trivet(['operation', 'watch', parked])).toMatch(/bucket\.delete stuck .* succeeded/);
      expect(await json(['operation', 'watch', parked])).toMatchObject({ id: parked, state: 'succeeded' });
    });

    it('does not wait for one that there is not', async () => {
      const id = randomUUID();
      const { code, stderr } = await run(['operation', 'watch', id]);
      expect(code).toBe(1);
      expect(stderr).toContain(`trivet: there is no operation ${id}\n`);
    });

    it('says what a state forbids', async () => {
      const { code, stderr } = await run(['operation', 'retry', parked]);
      expect(code).toBe(1);
      expect(stderr).toMatch(/^ {2}means {3}.*\(failed_precondition\)$/m);
      expect(stderr).toMatch(/^ {2}do {6}/m);
      expect(stderr).toMatch(new RegExp(`^ {2}quote {3}urn:uuid:${UUID.source}$`, 'm'));
      expect((await run(['operation', 'cancel', parked])).stderr).toContain('--reason is missing');
    });

    it('is listed and tried again straight from the database where that is asked for', async () => {
      const env = line.offline;
      const { items } = await json(['operation', 'list', '--offline', '--state', 'succeeded'], { env });
      expect(items).toContainEqual(
        expect.objectContaining({ id: parked, kind: 'bucket.delete', resource: { name: 'stuck' }, state: 'succeeded' }),
      );
      expect(await trivet(['operation', 'list', '--offline', '--limit', '1'], { env })).toMatch(
        /^ID +TENANT +KIND +RESOURCE/,
      );
      const { code, stderr } = await run(['operation', 'retry', parked, '--offline'], { env });
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('this one (bucket.delete) is') });
    });

    it('shows live what happens, one line an event', async () => {
      const args = ['operation', 'watch', '--json'];
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
      const [newest] = rows(await trivet(['audit', 'list', '--action', 'queue.', '--limit', '1']));
      expect(newest).toEqual(expect.arrayContaining(['the-admin@appliance (token house)']));
      const exported = (await trivet(['audit', 'export'])).trim().split('\n');
      const [{ count }] = (await line.house.query<{ count: string }>('SELECT count(*) FROM trivet.audit_entry')) as [
        { count: string },
      ];
      expect(exported.length).toBe(Number(count));
      for (const line of exported) expect(JSON.parse(line)).toMatchObject({ actor: { name: expect.any(String) } });
    });
  });
}
