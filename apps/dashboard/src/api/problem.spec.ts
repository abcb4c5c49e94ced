import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { adviceOf } from './problem';

/** Made of the code, and compared with it in each run of the tests. */
const problems = readFileSync(join(import.meta.dirname, '../../../../docs/problems.md'), 'utf8');

it('knows what each problem of the API means, and what to do', () => {
  const codes = [...problems.matchAll(/^## (\w+)$/gm)].map(([, code]) => code!);
  expect(codes.length).toBeGreaterThan(15);
  const unknown = adviceOf('no_such_code');
  expect(codes.filter(code => adviceOf(code) === unknown)).toEqual([]);
});
