import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ConfigError } from '#platform/config/config';
import { loadKeyring } from '#platform/crypto/kek';

const folder = mkdtempSync(join(tmpdir(), 'trivet-kek-'));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function keyFile(text: string, mode = 0o600): string {
  const path = join(folder, `kek-${files++}`);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

const one = randomBytes(32).toString('base64');
const two = randomBytes(32).toString('base64');

describe('a key file', () => {
  it('with one bare key gives it an id that follows from the key', () => {
    const ring = loadKeyring(keyFile(`${one}\n`));
    expect(ring.current.toString('base64')).toBe(one);
    expect(ring.currentId).toMatch(/^[0-9a-f]{16}$/);
    expect(loadKeyring(keyFile(one.replace(/=+$/, ''))).currentId).toBe(ring.currentId);
    expect(loadKeyring(keyFile(two)).currentId).not.toBe(ring.currentId);
  });

  it('with several keys seals with the first and knows the others', () => {
    const ring = loadKeyring(keyFile(`# rotated\n2026-11:${two}\n\n2026-10:${one}\r\n`, 0o400));
    expect(ring.ids).toEqual(['2026-11', '2026-10']);
    expect(ring.current.toString('base64')).toBe(two);
    expect(ring.get('2026-10')?.toString('base64')).toBe(one);
    expect(ring.get('nobody')).toBeUndefined();
  });

  const refused: [string, () => string, RegExp][] = [
    ['is empty', () => keyFile('\n# nothing\n'), /no key in it.*openssl rand/],
    ['is too short', () => keyFile(randomBytes(16).toString('base64')), /line 1: expected 32 bytes.*got 16/],
    ['is too long', () => keyFile(`a:${randomBytes(33).toString('base64')}`), /got 33/],
    ['is not base64', () => keyFile(`${one.slice(0, 20)}!${one.slice(21)}`), /not base64/],
    ['has a bad id', () => keyFile(`no spaces:${one}`), /line 1: expected an id/],
    ['has no id before the colon', () => keyFile(`:${one}`), /line 1: expected an id/],
    ['has an id twice', () => keyFile(`a:${one}\na:${two}`), /line 2: the id a is there twice/],
    ['may be read by its group', () => keyFile(one, 0o640), /mode 0640.*chmod 600/],
    ['may be read by everybody', () => keyFile(one, 0o604), /mode 0604.*chmod 600/],
    ['is missing', () => join(folder, 'absent'), /cannot read .*ENOENT/],
    ['is a folder', () => folder, /is not a file/],
  ];
  it.each(refused)('that %s is refused', (_, path, message) => {
    const load = () => loadKeyring(path());
    expect(load).toThrow(ConfigError);
    expect(load).toThrow(message);
    expect(load).toThrow(/^TRIVET_KEK_FILE/);
    expect(load).not.toThrow(new RegExp(one.slice(0, 12).replace(/[+/]/g, '.')));
  });
});
