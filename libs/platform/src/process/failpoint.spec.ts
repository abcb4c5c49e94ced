import { afterEach, describe, expect, it } from 'vitest';
import { failpoint, hookFailpoints } from '#platform/process/failpoint';

afterEach(() => hookFailpoints());

describe('a place', () => {
  it('is nothing while nobody has hooked it', () => {
    expect(failpoint('a')).toBeUndefined();
    hookFailpoints(() => Promise.resolve());
    expect(failpoint('a')).toBeDefined();
    hookFailpoints();
    expect(failpoint('a')).toBeUndefined();
  });

  it('does what the hook does at its name: waits, or throws', async () => {
    const names: string[] = [];
    hookFailpoints(name => {
      names.push(name);
      return name === 'a' ? Promise.reject(new Error('later')) : undefined;
    });
    expect(failpoint('b')).toBeUndefined();
    await expect(failpoint('a')).rejects.toThrow('later');
    hookFailpoints(() => {
      throw new Error('at once');
    });
    expect(() => failpoint('a')).toThrow('at once');
    expect(names).toEqual(['b', 'a']);
  });
});
