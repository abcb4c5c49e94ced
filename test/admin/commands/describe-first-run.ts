import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { CommandLine } from './command-line.js';

export function describeFirstRun({ run, trivet, json }: CommandLine): void {
  describe('the first run', () => {
    it('says what is done and what is open, by what is there', async () => {
      await trivet(['tenant', 'create', 'newcomer']);
      const shown = await trivet(['first-run', 'show', '--tenant', 'newcomer']);
      expect(shown).toMatch(/^\[x\] A tenant.*: newcomer$/m);
      expect(shown).toMatch(/^\[ \] A backend.*: none$/m);
      expect(shown).toContain('trivet backend create NAME --kind KIND --tenant newcomer');
      const { steps, done } = await json(['first-run', 'show', '--tenant', 'newcomer']);
      expect(done).toBe(false);
      expect(steps.map((step: { key: string; done: boolean }) => [step.key, step.done])).toEqual([
        ['tenant', true],
        ['backend', false],
        ['test', false],
        ['driver', false],
        ['first', false],
      ]);
    });

    it('prints YAML alone, and beside it what is to be filled in', async () => {
      const { code, stdout, stderr } = await run(['first-run', 'manifest', 'hpe-csi-inside', '--tenant', 'acme']);
      expect(code).toBe(0);
      const [secret] = parseAllDocuments(stdout).map(document => document.toJS());
      expect(secret.stringData).toMatchObject({ backend: 'local', username: expect.stringMatching(/@acme$/) });
      expect(stderr).toMatch(/^trivet: fill in password of \S+@acme: said once/m);
    });

    it('puts no login of a person into a cluster: the operator csp alone, or who came as drivers do', async () => {
      const user = async () => {
        const { stdout } = await run(['first-run', 'manifest', 'hpe-csi-inside', '--tenant', 'newcomer']);
        return parseAllDocuments(stdout)[0]!.toJS().stringData.username;
      };
      const create = (name: string, role: string) =>
        trivet(['user', 'create', name, '--role', role, '--tenant', 'newcomer']);
      await create('ann', 'admin');
      await create('bob', 'operator');
      expect(await user()).toBe('<user>@newcomer');
      await create('csp', 'operator');
      expect(await user()).toBe('csp@newcomer');
    });

    it('is dismissed by administrators, with a reason, and stays so', async () => {
      const args = ['first-run', 'dismiss', '--reason', 'by hand', '--tenant', 'newcomer'];
      for (const _ of ['once', 'again']) expect(await trivet(args)).toBe('the page shows it no more\n');
      expect(await json(['first-run', 'show', '--tenant', 'newcomer'])).toMatchObject({ dismissed: true });
      const { items } = await json(['audit', 'list', '--action', 'first-run.dismiss']);
      expect(items[0]).toMatchObject({ tenant: 'newcomer', reason: 'by hand' });
    });
  });
}
