/**
 * Loaded before a cut's watchdog: no copy begins while the file that TRIVET_TEST_HELD names is there. So a test acts in
 * the middle of a cut, however long the copies take and however late the test is. A file `….reached` says that one waits.
 */
import { existsSync, writeFileSync } from 'node:fs';
import files from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';

const held = process.env.TRIVET_TEST_HELD!;
const released = async (): Promise<void> => {
  writeFileSync(`${held}.reached`, '');
  while (existsSync(held)) await delay(1);
};
const { copyFile, open } = files;
files.copyFile = async (...args) => {
  await released();
  return copyFile(...args);
};
files.open = async (path, flags, mode) => {
  if (flags === 'wx') await released();
  return open(path, flags, mode);
};
syncBuiltinESMExports();
