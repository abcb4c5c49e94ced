import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { attemptNames, imageName, isCutOf, parseName, pathIn } from '#backends/rbd/rbd-names';

const id = randomUUID();

describe('names of images', () => {
  it.each(['', 'team', 'team/db-1.x'])('lead back to kind, incarnation and folder %j', folder => {
    for (const kind of ['volume', 'snapshot'] as const)
      expect(parseName(imageName({ pool: 'p', kind, id, folder }))).toEqual({ kind, id, folder });
  });

  it('of attempts differ, and say for what and with which fence they are', () => {
    const stage = { pool: 'p', imageId: id, operationId: randomUUID(), fence: '7' };
    const [one, other] = [attemptNames(stage), attemptNames(stage)];
    expect(one.name).not.toBe(other.name);
    expect(parseName(one.name)).toEqual({ kind: 'temporary', id, folder: '', fence: 7n });
    expect([isCutOf(one.cut, id), isCutOf(one.cut, randomUUID())]).toEqual([true, false]);
  });

  it('of others are none of ours', () => {
    for (const name of [
      '',
      'data',
      id,
      `trivet-v-${id}x`,
      `trivet-x-${id}`,
      `trivet-v-${id}+`,
      `trivet-t-${id}-1`,
      'trivet-v-1',
    ])
      expect(parseName(name)).toBeUndefined();
    expect(() => imageName({ pool: 'p', kind: 'volume', id: 'x', folder: '' })).toThrow(/not an image id/);
    expect(() => imageName({ pool: 'p', kind: 'import', id: 'x.raw', folder: '' })).toThrow(/no imports/);
  });

  it('are opened where a snapshot cannot be written', () => {
    expect(pathIn('rbd', 'a', 'volume')).toBe('rbd/a');
    expect(pathIn('rbd', 'a', 'snapshot')).toBe('rbd/a@trivet-sealed');
  });
});
