import { describe, expect, it } from 'vitest';
import { cephError } from '#backends/rbd/ceph-errors';
import { CephError, CephGone } from '#backends/rbd/ceph-process';
import { fullness } from '#backends/rbd/rbd-pools';

const client = { user: 'trivet', pools: [{ cephPool: 'fast' }, { cephPool: 'bulk' }] };
const errorOf = (code: string, syscall = 'rbd_create4') =>
  cephError(new CephError({ message: 'm', code, syscall }), 'make volume 1', client);

describe('errors of a cluster', () => {
  it.each([
    ['ENOSPC', 'resource_exhausted', /insufficient storage space: the cluster is full/],
    ['EDQUOT', 'resource_exhausted', /insufficient storage space: the quota/],
    ['ETIMEDOUT', 'timeout', /unknown/],
    ['ESHUTDOWN', 'unavailable', /blocklist/],
    [
      'EPERM',
      'permission_denied',
      /client\.trivet .* mon 'profile rbd' osd 'profile rbd pool=fast, profile rbd pool=bulk'/,
    ],
    ['EWHAT', 'internal', /make volume 1: EWHAT \(rbd_create4\)/],
  ])('%s is %s', (code, kind, message) => {
    expect(errorOf(code)).toMatchObject({ kind, message: expect.stringMatching(message) });
  });

  it.each([
    ['EACCES', 'permission_denied', /the key is not that user's/],
    ['EINVAL', 'permission_denied', /client\.trivet/],
    ['ETIMEDOUT', 'unavailable', /no monitor/],
    ['ECONNREFUSED', 'unavailable', /cannot be reached/],
  ])('%s of a connection is %s: nothing has been done', (code, kind, message) => {
    expect(errorOf(code, 'rados_connect')).toMatchObject({ kind, message: expect.stringMatching(message) });
  });

  it.each([
    ['the pool that was asked', 'bulk', 'rbd_open', ['bulk']],
    ['the pool of keys', 'fast', 'rados_write_op_operate', ['fast']],
    ['pool and data pool, of which either may be meant', 'fast', 'rbd_create4', ['fast', 'data']],
    ['the data pool', 'data', 'rados_write_op_operate', ['data']],
  ])('name the missing cap of %s', (_, cephPool, syscall, missing) => {
    const two = { user: 'trivet', pools: [{ cephPool: 'fast', dataPool: 'data' }, { cephPool: 'bulk' }] };
    const { message } = cephError(new CephError({ message: 'm', code: 'EPERM', syscall }, cephPool), 'look', two);
    const [, named = ''] = /lacks osd '([^']+)'/.exec(message) ?? [];
    expect(named.split(', ')).toEqual(missing.map(pool => `profile rbd pool=${pool}`));
    // `ceph auth caps` takes all of them at once.
    expect(message).toContain(
      "mon 'profile rbd' osd 'profile rbd pool=fast, profile rbd pool=data, profile rbd pool=bulk'",
    );
  });

  it('leave the effect unknown when the process that asked is gone', () => {
    expect(cephError(new CephGone('ended'), 'make volume 1', client)).toMatchObject({
      kind: 'timeout',
      retry: 'later',
    });
  });

  it('are foreseen where a pool keeps its writers waiting', () => {
    expect(fullness('hashpspool,selfmanaged_snaps')).toBeUndefined();
    expect(fullness('hashpspool,nearfull')).toBe('is nearly full');
    expect(fullness('backfillfull')).toBe('is nearly full');
    expect(fullness('hashpspool,full')).toBe('is full');
    expect(fullness('full,full_quota')).toBe('has used up its quota');
    expect(fullness(undefined)).toBeUndefined();
  });
});
