import { afterEach, describe, expect, it, vi } from 'vitest';
import { failpoint } from '#platform/process/failpoint';
import { armFailpoints, disarmFailpoints, FailpointError } from '#test/failpoints/failpoints';

afterEach(() => {
  disarmFailpoints();
  vi.restoreAllMocks();
});

describe('failpoint', () => {
  it('does nothing unless armed', () => {
    expect(failpoint('a')).toBeUndefined();
    armFailpoints('');
    expect(failpoint('a')).toBeUndefined();
    armFailpoints('b=error');
    expect(failpoint('a')).toBeUndefined();
    expect(() => failpoint('b')).toThrow(FailpointError);
    disarmFailpoints();
    expect(failpoint('b')).toBeUndefined();
  });

  it('fails at every hit, or at the n-th only', () => {
    armFailpoints('a=error; b.after-create=error@2');
    expect(() => failpoint('a')).toThrow(FailpointError);
    expect(() => failpoint('a')).toThrow('failpoint a');
    expect(failpoint('b.after-create')).toBeUndefined();
    expect(() => failpoint('b.after-create')).toThrow(FailpointError);
    expect(failpoint('b.after-create')).toBeUndefined();
  });

  it('traces every place without a rule of its own', () => {
    const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    armFailpoints('*=trace;b=error');
    expect(failpoint('a:before')).toBeUndefined();
    expect(() => failpoint('b')).toThrow(FailpointError);
    expect(write.mock.calls).toEqual([['failpoint a:before\n']]);
  });

  it('kills and stops this process by a signal', () => {
    const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
    armFailpoints('k=kill;s=stop');
    void failpoint('k');
    void failpoint('s');
    expect(kill.mock.calls).toEqual([
      [process.pid, 'SIGKILL'],
      [process.pid, 'SIGSTOP'],
    ]);
  });

  it('hangs', async () => {
    armFailpoints('h=hang');
    const first = await Promise.race([failpoint('h'), new Promise(resolve => setImmediate(resolve, 'still hanging'))]);
    expect(first).toBe('still hanging');
  });

  it.each(['a', 'a=explode', 'a=kill@0', 'a=kill@x', '=kill', 'a=kill b=kill'])('refuses %s', spec => {
    armFailpoints('a=error');
    expect(() => armFailpoints(spec)).toThrow('expected name=kill|stop|hang|error|trace[@n]');
    expect(failpoint('a')).toBeUndefined();
  });
});
