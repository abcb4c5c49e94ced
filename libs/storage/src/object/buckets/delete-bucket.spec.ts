import { describe, expect, it } from 'vitest';
import { deleteBucket } from '#storage/object/buckets/delete-bucket';

describe('the deletion of a bucket whose rights belong to principals', () => {
  const rights = (isEmpty: boolean) => {
    const backend = { traits: () => ({ rightsOfPrincipals: true }), isBucketEmpty: async () => isEmpty };
    const handler = deleteBucket.handler({ backends: { open: async () => backend }, secrets: {} } as never);
    const step = handler.steps.find(({ name }) => name === 'rights')!;
    const run = (draining: boolean) => {
      const request = { deletePolicy: 'retain', wasReady: true, draining };
      const operation = { resourceName: 'photos', resourceId: 'id', request, progress: {} };
      const call = (_: string, work: () => unknown) => work();
      const holders = [{ accessId: 'a', uid: 'u', mode: 'read_write', sealed: null }];
      return step.run({ holders }, { operation, progress: operation.progress, call } as never);
    };
    return run;
  };

  it.each([
    [false, 'never'],
    [true, 'person'],
  ])('does not keep it with its tenant draining: %s, retry %s', async (draining, retry) => {
    await expect(rights(false)(draining)).rejects.toMatchObject({ kind: 'failed_precondition', retry });
  });

  it.each(['failed', 'given up'])('has the next Grants look when it has %s after rights were taken', how => {
    const handler = deleteBucket.handler({} as never);
    const written = (progress: object) => {
      const names: string[] = [];
      const writer = { write: ({ name }: { name: string }) => names.push(name) };
      const operation = { request: { wasReady: true }, progress };
      if (how === 'failed') handler.fail!(writer as never, operation as never, undefined);
      else handler.giveUp!.write!(writer as never, operation as never);
      return names;
    };
    expect(written({ rightsTaken: true })).toEqual(['bucket_doubt_grants', 'bucket_kept']);
    expect(written({})).toEqual(['bucket_kept']);
  });

  it('commits that rights are taken before it takes any', async () => {
    await expect(rights(true)(false)).resolves.toBe('again');
  });
});
