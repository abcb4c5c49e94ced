import { expect, it, vi } from 'vitest';
import { Circuits } from '#operations/circuit';

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
