import { afterEach, describe, expect, it, vi } from 'vitest';
import { ConfigError } from '#platform/config';
import { configureFailpoints, FailpointError, failpoint } from '#platform/failpoint';

afterEach(() => {
  configureFailpoints({ enabled: false });
  vi.restoreAllMocks();
});

describe('failpoint', () => {
  it('does nothing unless configured', () => {
    expect(failpoint('a')).toBeUndefined();
    configureFailpoints({ enabled: true });
    expect(failpoint('a')).toBeUndefined();
    configureFailpoints({ enabled: true, spec: 'b=error' });
    expect(failpoint('a')).toBeUndefined();
  });

  it('fails at every hit, or at the n-th only', () => {
    configureFailpoints({ enabled: true, spec: 'a=error; b.after-create=error@2' });
    expect(() => failpoint('a')).toThrow(FailpointError);
    expect(() => failpoint('a')).toThrow('failpoint a');
    expect(failpoint('b.after-create')).toBeUndefined();
    expect(() => failpoint('b.after-create')).toThrow(FailpointError);
    expect(failpoint('b.after-create')).toBeUndefined();
  });

  it('traces every place without a rule of its own', () => {
    const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    configureFailpoints({ enabled: true, spec: '*=trace;b=error' });
    expect(failpoint('a:before')).toBeUndefined();
    expect(() => failpoint('b')).toThrow(FailpointError);
    expect(write.mock.calls).toEqual([['failpoint a:before\n']]);
  });

  it('kills and stops this process by a signal', () => {
    const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
    configureFailpoints({ enabled: true, spec: 'k=kill;s=stop' });
    void failpoint('k');
    void failpoint('s');
    expect(kill.mock.calls).toEqual([
      [process.pid, 'SIGKILL'],
      [process.pid, 'SIGSTOP'],
    ]);
  });

  it('hangs', async () => {
    configureFailpoints({ enabled: true, spec: 'h=hang' });
    const first = await Promise.race([failpoint('h'), new Promise(resolve => setImmediate(resolve, 'still hanging'))]);
    expect(first).toBe('still hanging');
  });

  it.each(['a', 'a=explode', 'a=kill@0', 'a=kill@x', '=kill', 'a=kill b=kill'])('refuses %s', spec => {
    expect(() => configureFailpoints({ enabled: true, spec })).toThrow(ConfigError);
    expect(failpoint('a')).toBeUndefined();
  });

  it('refuses a spec while failpoints are off', () => {
    expect(() => configureFailpoints({ enabled: false, spec: 'a=kill' })).toThrow(/TRIVET_FAILPOINTS=1/);
  });
});
