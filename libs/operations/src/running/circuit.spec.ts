import { expect, it, vi } from 'vitest';
import { Circuits } from '#operations/running/circuit';
import { StorageError } from '#platform/errors';

const noted = (engine: ReturnType<typeof vi.fn>) =>
  engine.mock.calls.filter(([{ name }]) => name === 'circuit_note').map(([, params]) => params);

it('notes that a backend answers, once a minute for each, whatever comes of the note', async () => {
  const engine = vi.fn(async () => {
    throw new Error('the database is away');
  });
  const circuits = new Circuits({ engine }, async () => {});
  const clock = vi.spyOn(performance, 'now').mockReturnValue(0);
  try {
    for (const backend of ['a', 'a', 'b', 'a']) circuits.answered('tenant', backend);
    clock.mockReturnValue(59_000);
    circuits.answered('tenant', 'a');
    expect(noted(engine)).toEqual([
      ['tenant', 'a'],
      ['tenant', 'b'],
    ]);
    clock.mockReturnValue(60_000);
    circuits.answered('tenant', 'a');
    expect(noted(engine)).toHaveLength(3);
  } finally {
    clock.mockRestore();
  }
});

const params = (engine: ReturnType<typeof vi.fn>, statement: string) =>
  engine.mock.calls.filter(([{ name }]) => name === statement).map(([, given]) => given);

it('keeps to itself that it could not open: what the call said must reach its operation', async () => {
  const engine = vi.fn(async () => {
    throw new Error('the database is away');
  });
  const circuits = new Circuits({ engine }, async () => {});
  for (let n = 0; n < 3; n++) await circuits.unanswered('tenant', 'a', 'no answer');
  expect(params(engine, 'circuit_open')).toHaveLength(1);
});

it('takes a probe that never ends for one that failed', async () => {
  vi.useFakeTimers();
  try {
    const engine = vi.fn(async ({ name }: { name: string }) =>
      name === 'circuit_claim_probes' ? [{ tenantId: 'tenant', backendId: 'deaf', failures: 3 }] : [],
    );
    const circuits = new Circuits({ engine } as never, () => new Promise(() => {}));
    const probed = circuits.run(new AbortController().signal);
    await vi.advanceTimersByTimeAsync(60_000);
    await probed;
    expect(params(engine, 'circuit_open')).toMatchObject([
      ['tenant', 'deaf', 3, expect.anything(), expect.anything(), 'no answer'],
    ]);
    expect(params(engine, 'circuit_close')).toEqual([]);
  } finally {
    vi.useRealTimers();
  }
});

it.each([
  [new StorageError('unauthenticated', '403 SignatureDoesNotMatch'), 'the backend refuses our credentials'],
  [new StorageError('unavailable', 'ECONNREFUSED'), 'the backend does not answer'],
])('says of one that stays open whether it is silent or does not let us in: %s', async (error, reason) => {
  const engine = vi.fn(async ({ name }: { name: string }) =>
    name === 'circuit_claim_probes' ? [{ tenantId: 'tenant', backendId: 'shut', failures: 3 }] : [],
  );
  await new Circuits({ engine } as never, () => Promise.reject(error)).run(new AbortController().signal);
  expect(params(engine, 'circuit_open')).toMatchObject([
    ['tenant', 'shut', 3, expect.anything(), expect.stringContaining(reason), error.message],
  ]);
});

it('opens for a pool that does not answer only where its backend as a whole does not', async () => {
  const engine = vi.fn(async () => []);
  let isUp = true;
  const probe = async () => {
    if (!isUp) throw new Error('no pool is up');
  };
  const circuits = new Circuits({ engine } as never, probe);
  const fail = async (pool: string | undefined, times: number) => {
    for (let n = 0; n < times; n++) await circuits.unanswered('tenant', 'a', 'no answer', pool);
  };
  await fail('one', 6);
  await fail('two', 2);
  await fail(undefined, 2);
  expect(params(engine, 'circuit_open')).toEqual([]);
  isUp = false;
  await fail('two', 1);
  expect(params(engine, 'circuit_open')).toHaveLength(1);
});
