import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { hangs, readUnderWay, underWayLine } from './under-way.js';
import UnderWayReporter from './under-way-reporter.js';

const MINUTE = 60_000;

describe('what is under way in a test run', () => {
  let folder: string;
  let kept: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'under-way-'));
    kept = join(folder, 'kept.json');
    vi.stubEnv('TRIVET_TEST_UNDER_WAY', kept);
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });

  it('is each file that has begun and has not ended, with the test that it began last', () => {
    expect(readUnderWay(kept)).toEqual([]);
    const reporter = new UnderWayReporter();
    const [a, b] = [{ moduleId: '/clone/a.spec.ts' }, { moduleId: '/clone/b.spec.ts' }];
    reporter.onTestModuleStart(a);
    reporter.onTestModuleStart(b);
    reporter.onTestCaseReady({ fullName: 'a disk > is kept', module: a });
    reporter.onTestCaseReady({ fullName: 'a disk > is lost', module: a });
    reporter.onTestModuleEnd(b);
    expect(readUnderWay(kept)).toEqual([
      {
        name: '/clone/a.spec.ts',
        since: expect.any(Number),
        test: { name: 'a disk > is lost', since: expect.any(Number) },
      },
    ]);
  });

  it('hangs after twenty minutes, and is said by name', () => {
    const file = { name: '/clone/a.spec.ts', since: 0 };
    expect([19, 21].map(minutes => hangs(file, minutes * MINUTE))).toEqual([false, true]);
    expect(underWayLine(file, '/clone', MINUTE)).toBe('a.spec.ts was under way for 60 s, before its first test');
    const test = { name: 'a disk > is kept', since: 45_000 };
    expect(underWayLine({ ...file, test }, '/clone', MINUTE)).toBe(
      'a.spec.ts was under way for 60 s, 15 s of them in or behind: a disk > is kept',
    );
  });
});
