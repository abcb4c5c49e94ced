import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { IdentityFile } from './identity.js';

let home: string;
let file: IdentityFile;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'identity-'));
  file = new IdentityFile(home);
});
afterEach(() => rmSync(home, { recursive: true }));

const files = () => readdirSync(join(home, 'connector')).sort();

describe('the key that a connector joins with', () => {
  it('is kept, for its owner alone, until there is an identity', async () => {
    const made = await file.keyToJoin();
    expect(made.request).toContain('BEGIN CERTIFICATE REQUEST');
    expect(statSync(join(home, 'connector', 'joining.pem')).mode & 0o777).toBe(0o600);
    expect(await new IdentityFile(home).keyToJoin()).toEqual(made);
    file.write({ key: made.key, certificate: 'certificate', authority: 'authority' });
    expect(files()).toEqual(['identity.pem']);
    expect((await file.keyToJoin()).key).not.toBe(made.key);
  });

  it('is one for all that ask for it at once', async () => {
    const all = await Promise.all(Array.from({ length: 8 }, () => new IdentityFile(home).keyToJoin()));
    expect(new Set(all.map(({ key }) => key)).size).toBe(1);
    expect(files()).toEqual(['joining.pem']);
  });

  it('is made anew where the kept one is damaged', async () => {
    const { key } = await file.keyToJoin();
    writeFileSync(join(home, 'connector', 'joining.pem'), key.slice(0, 80));
    const made = await file.keyToJoin();
    expect(made.key).not.toBe(key);
    expect(await file.keyToJoin()).toEqual(made);
  });
});
