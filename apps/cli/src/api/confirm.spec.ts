import { afterEach, expect, it, vi } from 'vitest';
import { confirm } from './confirm.js';

const asked: string[] = [];
let answer = '';
vi.mock('node:readline/promises', () => ({
  createInterface: () => ({
    question: async (question: string) => {
      asked.push(question);
      return answer;
    },
    close: () => undefined,
  }),
}));

const { isTTY } = process.stdin;
const at = (terminal: boolean) => Object.assign(process.stdin, { isTTY: terminal });
afterEach(() => {
  at(isTTY);
  asked.length = 0;
});

it('asks at a terminal what goes, and takes nothing but yes', async () => {
  at(true);
  answer = ' yes ';
  await confirm('volume data is deleted', undefined);
  expect(asked).toEqual(['volume data is deleted. Type yes: ']);
  for (answer of ['y', 'no', ''])
    await expect(confirm('volume data is deleted', undefined)).rejects.toThrow('nothing was done');
});

it('asks nobody who has said yes already, and nobody where there is no terminal', async () => {
  at(true);
  await confirm('volume data is deleted', true);
  at(false);
  await confirm('volume data is deleted', true);
  const refused = { message: 'volume data is deleted: give --yes to do it', exitCode: 65 };
  await expect(confirm('volume data is deleted', undefined)).rejects.toMatchObject(refused);
  expect(asked).toEqual([]);
});
