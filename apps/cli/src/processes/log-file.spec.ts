import { expect, it } from 'vitest';
import { remedyOf } from '../supervisor/remedy.js';
import { tellingLine } from './log-file.js';

it.each([
  [
    'starting\nFATAL:  could not open file "x": Permission denied\nsaying goodbye\n',
    'FATAL:  could not open file "x": Permission denied',
  ],
  ['one\ntwo\n\n', 'two'],
  [
    '{"level":"info","msg":"listening"}\n{"level":"error","msg":"cannot start","err":{"message":"no such table"}}',
    'cannot start: no such table',
  ],
  ['', ''],
])('of a log is told what says what is wrong: %j', (text, line) => {
  expect(tellingLine(text)).toBe(line);
});

it.each([
  ['radosgw: port 8752 is taken by nc, pid 7', 'end who has the port'],
  ['ceph-osd.0: ended with code 1: No space left on device', 'make room on its disk'],
  [
    'postgres: ended with code 1: FATAL: x: Permission denied',
    'let the user that runs up read and write what it names',
  ],
  ['whatever else', 'mend what it says'],
])('what a part says is followed by what to do: %s', (reason, todo) => {
  expect(remedyOf(reason)).toBe(`${todo}, then ./trivet down and ./trivet up`);
});
