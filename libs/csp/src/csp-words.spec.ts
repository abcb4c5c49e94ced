import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { BlockCapabilities } from '#backends/block-backend';
import { toRefusal } from '#csp/csp-errors';
import { invalid, StorageError } from '#platform/errors';
import { PACKAGE_ROOT } from '#platform/package-root';
import type { VolumeRequest } from '#storage/block/block-storage';
import { requireShortStall } from '#storage/block/snapshots/cut-limits';
import { checkCapabilities } from '#storage/block/volumes/volume-checks';

/** Every field that a room of the domain names in a refusal. */
const fieldsOf = (room: string): string[] =>
  globSync(join(PACKAGE_ROOT, 'libs', room, 'src', '**', '!(*.spec).ts')).flatMap(path =>
    [...readFileSync(path, 'utf8').matchAll(/(?:invalid\(\s*|\bfield: )['`]([^'`]+)['`]/g)].map(([, field]) => field!),
  );

const messageOf = (work: () => void): string => {
  try {
    work();
  } catch (error) {
    return toRefusal(error).message;
  }
  throw new Error('nothing was refused');
};

describe('what the domain refuses, in words of CSP', () => {
  it.each([
    ['thick', { thick: true }, 'cannot reserve space; remove the line thick: "true"'],
    ['encrypted', { encrypted: true }, 'does not encrypt volumes; remove the line encrypted: "true"'],
    ['dedupe_enabled', { deduplication: true }, 'does not deduplicate; remove the line dedupeEnabled: "true"'],
    ['limit_iops', { limitIops: 1_000 }, 'cannot limit operations a second; remove the line limitIops'],
    ['limit_mbps', { limitMbps: 10 }, 'cannot limit throughput; remove the line limitMbps'],
  ])('names config.%s, and the line that asks for it', (key, asked, said) => {
    const message = messageOf(() => checkCapabilities(asked as VolumeRequest, {} as BlockCapabilities));
    expect(message).toBe(`config.${key}: this backend ${said} from the StorageClass`);
  });

  it('names a field where the message begins with it, and nowhere else', () => {
    const told = (error: StorageError) => toRefusal(error).message;
    expect(told(invalid('pool', 'no pool slow'))).toBe('config.pool: no pool slow');
    expect(told(invalid('performancePolicy', 'x'))).toBe('performance_policy: x');
    expect(told(invalid('size', 'pool x'))).toBe('size: pool x');
    expect(told(invalid('toString', 'x'))).toBe('toString: x');
    const chap = new StorageError('already_exists', 'chap.user bob belongs to host a', { field: 'chap.user' });
    expect(told(chap)).toBe('chap_user bob belongs to host a');
    const host = new StorageError('not_found', 'Host with id x not found.', { field: 'host' });
    expect(told(host)).toBe('Host with id x not found.');
    const alike = new StorageError('failed_precondition', 'pools are down', { field: 'pool' });
    expect(told(alike)).toBe('pools are down');
  });

  it.each(['storage', 'operations', 'changes', 'backends'])('is in no words of CSP in libs/%s', room => {
    const fields = fieldsOf(room).filter(field => !field.startsWith('parameters['));
    expect(fields.filter(field => /_|^config\./.test(field))).toEqual([]);
    if (room === 'storage') expect(fields).toEqual(expect.arrayContaining(['pool', 'performancePolicy', 'chap.user']));
  });

  it('says once by what a snapshot that stalls its writers is taken all the same', () => {
    const stalls = { stallMs: 10_000, extents: 5, more: false };
    const once = messageOf(() => requireShortStall(stalls, 'volume a', false));
    expect(once).toMatch(/above the limit of 5000 ms; config\.force=true takes the snapshot all the same$/);
    const stored = new StorageError('failed_precondition', once, { field: 'force' });
    expect(toRefusal(stored).message).toBe(once);
  });
});
