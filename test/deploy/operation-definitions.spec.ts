import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, it } from 'vitest';
import { CHANGE_OPERATIONS } from '#changes/change-operations';
import { PACKAGE_ROOT } from '#platform/package-root';
import { BLOCK_OPERATIONS } from '#storage/block/block-operations';
import { REPLAY } from '#storage/block/volumes/volume-slots';
import { BULK_OPERATIONS } from '#storage/bulk/run-bulk';
import { OBJECT_OPERATIONS } from '#storage/object/object-operations';

const listed = [...OBJECT_OPERATIONS, ...BLOCK_OPERATIONS, ...CHANGE_OPERATIONS, ...BULK_OPERATIONS]
  .map(({ kind }) => kind)
  .sort();

/** What is negated below the folder that defines it is named there. */
const NAMED: Readonly<Record<string, string>> = { 'REPLAY.kind': REPLAY.kind };

const DEFINITION = /^export const (\w+) = defineOperation\(\s*(?:'([\w.]+)'|([\w.]+)),/gm;
const defined = readdirSync(join(PACKAGE_ROOT, 'libs'), { recursive: true })
  .map(file => join('libs', `${file}`))
  .filter(file => /\.ts$/.test(file) && !/\.spec\.ts$/.test(file))
  .flatMap(file =>
    [...readFileSync(join(PACKAGE_ROOT, file), 'utf8').matchAll(DEFINITION)].map(([, name, kind, named]) => ({
      file,
      name: name!,
      kind: kind ?? NAMED[named!] ?? named!,
    })),
  );

it('runs each kind of operation that is defined', () => {
  expect(defined.map(({ kind }) => kind).sort()).toEqual(listed);
});

it('defines each in a file of its name', () => {
  const dashed = (name: string) => name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`);
  expect(defined.filter(({ file, name }) => basename(file) !== `${dashed(name)}.ts`)).toEqual([]);
});
