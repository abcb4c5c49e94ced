import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CommandLine } from './command-line.js';

/** A registration that was wrong, and is mended. */
export function describeBackendChanges(line: CommandLine): void {
  const { run, trivet, json } = line;
  const change = (...args: string[]) => ['backend', 'change', 'mended', '--tenant', 'acme', ...args];
  const sealed = async (): Promise<string> => {
    const [row] = await line.house.query<{ sealed: Buffer }>(
      `SELECT s.sealed FROM trivet.secret s JOIN trivet.backend b ON b.id = s.owner_id
        WHERE b.tenant_id = $1 AND b.name = 'mended'`,
      [line.house.acme.id],
    );
    return row!.sealed.toString('hex');
  };

  describe('trivet backend show and change', () => {
    it('give one other keys and settings, keep the rest, and show no keys', async () => {
      const keys = { accessKeyId: 'AKIDOFTHECOMMANDLINE', secretAccessKey: 'secret-of-the-command-line' };
      const add = ['backend', 'create', 'mended', '--tenant', 'acme', '--kind', 'rgw', '--credentials-file', '-'];
      await trivet([...add, '--set', 'endpoint=http://127.0.0.1:9', '--set', 'region=here'], {
        input: JSON.stringify({ ...keys, secretAccessKey: 'wrong-secret-of-the-command-line' }),
      });
      const wrong = await sealed();
      expect(
        await trivet(change('--credentials-file', '-', '--reason', 'it was wrong'), { input: JSON.stringify(keys) }),
      ).toBe('mended is changed; next: trivet backend test mended --tenant acme\n');
      expect(await sealed()).not.toBe(wrong);
      const [entry] = await line.house.audit('backend.change');
      expect(entry).toMatchObject({ reason: 'it was wrong' });

      const changed = await json(change('--set', 'publicEndpoint=http://127.0.0.1:10', '--description', 'mended'));
      expect(changed).toMatchObject({
        description: 'mended',
        config: { endpoint: 'http://127.0.0.1:9', region: 'here', publicEndpoint: 'http://127.0.0.1:10' },
      });
      expect((await json(change('--unset', 'publicEndpoint'))).config).not.toHaveProperty('publicEndpoint');
      const file = join(line.home, 'mended.json');
      writeFileSync(file, JSON.stringify({ endpoint: 'http://127.0.0.1:11' }));
      expect((await json(change('--config-file', file, '--set', 'region=there'))).config).toMatchObject({
        endpoint: 'http://127.0.0.1:11',
        region: 'there',
      });

      const shown = await trivet(['backend', 'show', 'mended', '--tenant', 'acme']);
      expect(shown).toMatch(/^kind +rgw$/m);
      expect(shown).toMatch(/^holds +nothing$/m);
      expect(shown).toMatch(/^settings:\n {2}/m);
      expect(shown).toMatch(/^ {2}endpoint +http:\/\/127\.0\.0\.1:11$/m);
      expect(shown).not.toContain('secret-of');
      expect(await trivet(['backend', 'show', 'local', '--tenant', 'acme'])).toMatch(/^pools +default is up: /m);
    });

    it('say what is wrong with what they were given', async () => {
      const refused: [string[], number, string][] = [
        [change(), 65, 'nothing to change: give --set, --unset, --config-file, --credentials-file or --description'],
        [change('--unset', 'colour'), 65, '--unset colour: it is not set; what is set is '],
        [change('--set', 'colour=red'), 65, 'config.colour: there is no such key'],
        [change('--config-file', '-', '--credentials-file', '-'), 65, 'standard input can be read once'],
        [change('--credentials-file', join(line.home, 'absent')), 65, '--credentials-file: cannot read'],
        [['backend', 'show', 'absent', '--tenant', 'acme'], 1, 'absent'],
        [['backend', 'change', 'absent', '--tenant', 'acme', '--set', 'a=1'], 1, 'absent'],
      ];
      const ended = await Promise.all(refused.map(([args]) => run(args)));
      expect(ended).toMatchObject(
        refused.map(([, code, said]) => ({ code, stdout: '', stderr: expect.stringContaining(said) })),
      );
      const halves = await run(change('--credentials-file', '-'), { input: '{"accessKeyId": "AKIDOFTHECOMMANDLINE"}' });
      expect(halves).toMatchObject({ code: 65, stderr: expect.stringContaining('secretAccessKey') });
      expect(await run(change('--set', 'region=x'), { who: line.house.acme.admin })).toMatchObject({ code: 77 });
      expect(await trivet(['backend', 'delete', 'mended', '--tenant', 'acme'])).toBe('mended is deleted\n');
    });
  });
}
