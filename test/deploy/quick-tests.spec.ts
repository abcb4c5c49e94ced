import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import quick from '../quick-tests.json' with { type: 'json' };

/** Each takes more than a quick run has, or what it needs beyond the appliance's own parts is not started for one. */
const TOO_SLOW = [
  'block-model',
  'compose',
  'dashboard',
  'fuzz',
  'guest',
  'hosts',
  'install',
  'launcher',
  'model',
  'systemd',
  'tracing',
  'upgrade',
];

it('a quick run has some of each subject, or says why not', () => {
  for (const path of quick) expect(existsSync(join(PACKAGE_ROOT, path)), path).toBe(true);
  const folder = join(PACKAGE_ROOT, 'test');
  const subjects = readdirSync(folder).filter(name => {
    const entries = name.includes('.') ? [] : readdirSync(join(folder, name));
    return entries.some(file => file.endsWith('.spec.ts')) && !['fakes', 'failpoints', 'support'].includes(name);
  });
  const without = subjects.filter(name => !quick.some(path => path.startsWith(`test/${name}/`)));
  expect(without.sort()).toEqual(TOO_SLOW);
});
