import { describe, expect, it } from 'vitest';
import { checkFolder, imagePath, parseTemporary, stagedPath, writingPath } from '#backends/reflink/layout';
import { reflinkKind } from '#backends/reflink/reflink-kind';

const id = '0190a3c1-0000-7000-8000-000000000001';
const operationId = '0190a3c1-0000-7000-8000-000000000002';

describe('the layout of a pool', () => {
  it.each(['', 'a', 'team/db-1', 'A_b.c/d', 'x'.repeat(63)])('takes the folder %j', folder => {
    checkFolder(folder, 'folder');
  });

  it.each([
    '/',
    '/a',
    'a/',
    'a//b',
    '.',
    '..',
    'a/../b',
    '.hidden',
    '-a',
    'a b',
    'ä',
    'a\n',
    'a\0',
    'x'.repeat(64),
    Array.from({ length: 60 }, () => 'abcd').join('/'),
    id,
    id.toUpperCase(),
  ])('refuses the folder %j', folder => {
    expect(() => checkFolder(folder, 'volume_folder')).toThrow(
      expect.objectContaining({ kind: 'invalid_argument', field: 'volume_folder' }),
    );
  });

  it('puts nothing outside of the pool, whoever asks', () => {
    const image = { pool: 'p', kind: 'volume', id, folder: 'a' } as const;
    expect(imagePath('/pool', image)).toBe(`/pool/volumes/a/${id}`);
    expect(imagePath('/pool', { ...image, kind: 'snapshot', folder: '' })).toBe(`/pool/snapshots/${id}`);
    expect(() => imagePath('/pool', { ...image, id: '../../etc/passwd' })).toThrow(/not an image id/);
    expect(() => imagePath('/pool', { ...image, folder: '../..' })).toThrow(/folder/);
    const stage = { pool: 'p', imageId: id, operationId, fence: '1' };
    for (const bad of [{ fence: '../1' }, { operationId: 'x/../../y' }, { imageId: '..' }])
      expect(() => stagedPath('/pool', { ...stage, ...bad })).toThrow(/not a stage/);
  });

  it('knows its temporaries again, and nothing else', () => {
    const stage = { pool: 'p', imageId: id, operationId, fence: '12' };
    const names = [stagedPath('', stage), writingPath('', stage)].map(path => path.split('/').at(-1)!);
    for (const name of names) expect(parseTemporary(name)).toEqual({ imageId: id, fence: 12n });
    expect(new Set(names.concat(writingPath('', stage))).size).toBe(3);
    for (const name of ['scratch', `${id}-${operationId}`, `${id}-${operationId}-12.txt`, `${id}-x-12`])
      expect(parseTemporary(name)).toBeUndefined();
  });
});

describe('the configuration of the reflink backend', () => {
  const pools = [{ name: 'default', path: '/srv/pool', portals: ['127.0.0.1:3260', '[::1]:3260'] }];

  it('is read strictly', () => {
    const config = reflinkKind.parseConfig({ pools, exporter: { kind: 'none' } });
    expect(reflinkKind.pools(config)).toEqual([{ ...pools[0], withoutChap: false }]);
  });

  it.each([
    [{ pools }],
    [{ pools, exporter: { kind: 'tgt' } }],
    [{ pools, exporter: { kind: 'tgt', folder: 'relative' } }],
    [{ pools, exporter: { kind: 'none' }, surprise: 1 }],
    [{ pools: [{ ...pools[0], path: 'relative' }], exporter: { kind: 'none' } }],
    [{ pools: [{ ...pools[0], portals: ['here'] }], exporter: { kind: 'none' } }],
    [{ pools: [pools[0], pools[0]], exporter: { kind: 'none' } }],
  ])('is refused: %j', config => {
    expect(() => reflinkKind.parseConfig(config)).toThrow(expect.objectContaining({ kind: 'internal' }));
  });
});
