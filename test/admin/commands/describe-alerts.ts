import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { uuidv7 } from '#platform/uuid';
import { type CommandLine, rows } from './command-line.js';

/** Alerts, who is told of them, and of what nobody is. */
export function describeAlerts(line: CommandLine): void {
  const { run, trivet, json } = line;
  const targetFile = (target: object): string => {
    const file = join(line.home, 'target.json');
    writeFileSync(file, JSON.stringify(target));
    return file;
  };

  describe('trivet receiver', () => {
    const SMTP = { kind: 'smtp', host: 'mail.invalid', from: 'trivet@example.com', to: ['ann@example.com'] };

    it('makes, shows, changes, tests and deletes one, and keeps its key out of everything', async () => {
      const file = targetFile({ ...SMTP, user: 'trivet', password: 'secret-of-the-command-line' });
      const made = await trivet(['receiver', 'create', 'second', '--target-file', file, '--only-escalated', 'yes']);
      expect(made).toBe('second is told from now on; next: trivet receiver test second\n');
      const pager = targetFile({ kind: 'pagerduty', routingKey: 'a'.repeat(32), region: 'eu' });
      const escalates = ['--escalate-to', 'second', '--escalate-after-minutes', '15'];
      // Of a test that stays in this host nobody at PagerDuty is told.
      await trivet(['receiver', 'create', 'first', '--target-file', pager, '--severity', 'error', ...escalates]);
      await trivet(['receiver', 'change', 'first', '--off']);
      expect(rows(await trivet(['receiver', 'list'])).map(row => row.slice(0, 6))).toEqual([
        ['first', 'pagerduty', 'https://events.eu.pagerduty.com', 'off', 'error', 'second after 15 min'],
        ['second', 'smtp', 'ann@example.com by mail.invalid:587', 'on', 'escalated', '-'],
      ]);
      const shown = await trivet(['receiver', 'show', 'second']);
      expect(shown).toContain('what is escalated to it');
      expect(shown).not.toContain('secret-of-the-command-line');
      const tested = await run(['receiver', 'test', 'second']);
      expect(tested.code).not.toBe(0);
      expect(tested.stdout).toBe('second did not take it\n');
      expect(tested.stderr).toMatch(/mail.invalid cannot be reached: E[A-Z_]+/);
      const held = await run(['receiver', 'delete', 'second']);
      expect(held.stderr).toMatch(/first escalates to second/);
      await trivet(['receiver', 'change', 'first', '--escalate-to', 'none']);
      expect(await trivet(['receiver', 'delete', 'second'])).toBe('second is deleted\n');
      await trivet(['receiver', 'delete', 'first']);
      expect(await trivet(['receiver', 'list'])).toContain('trivet receiver create NAME');
    });

    it('says what is wrong with a target before anybody is told', async () => {
      const inner = targetFile({ kind: 'slack', url: 'https://10.0.0.1/hook' });
      const refused = await run(['receiver', 'create', 'inner', '--target-file', inner]);
      expect(refused.code).not.toBe(0);
      expect(refused.stderr).toMatch(/10.0.0.1 is an address that alerts must not be sent to/);
      const half = await run(['receiver', 'create', 'half', '--target-file', inner, '--escalate-to', 'nobody']);
      expect(half.stderr).toMatch(/--escalate-to and --escalate-after-minutes go together/);
    });
  });

  describe('trivet alert and silence', () => {
    it('lists, shows and acknowledges alerts, and silences a rule', async () => {
      const id = uuidv7();
      await line.house.query(
        `INSERT INTO trivet.alert (tenant_id, id, rule, object, severity, state, what, means, todo, opened_at)
         VALUES ($1, $2, 'queue_paused', 'made up', 'warning', 'open', 'what is wrong', 'what follows', 'what to do', now())`,
        [line.house.root.id, id],
      );
      // A worker that looks would end it: what is made up is not seen.
      const shown = await trivet(['alert', 'show', id]);
      for (const said of ['what is wrong', 'what follows', 'what to do', 'queue_paused, warning', 'made up'])
        expect(shown).toContain(said);
      const listed = rows(await trivet(['alert', 'list', '--rule', 'queue_paused', '--severity', 'warning']));
      expect(listed.map(row => row.at(-1))).toContain(id);
      const acknowledged = await trivet(['alert', 'acknowledge', id, '--note', 'on my way']);
      expect(acknowledged).toMatch(/^queue_paused is acknowledged by the-admin@appliance.*: what is wrong\n$/);
      expect((await json(['alert', 'show', id])).acknowledged).toMatchObject({ note: 'on my way' });
      const silenced = await trivet(['silence', 'create', '--rule', 'orphan', '--minutes', '60', '--reason', 'moving']);
      const [, silence] = /^orphan is silent until \S+: (\S+)\n$/.exec(silenced)!;
      expect(rows(await trivet(['silence', 'list']))[0]).toEqual(
        expect.arrayContaining(['orphan', 'any', 'moving', silence]),
      );
      expect(await trivet(['silence', 'delete', silence!])).toBe(`${silence} is over\n`);
      expect(await trivet(['silence', 'list'])).toContain('nothing is silenced');
    });
  });
}
