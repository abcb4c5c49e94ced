import { expect, it, vi } from 'vitest';
import { StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { StoreVisits } from '#storage/shared/store-visits';

const log = createLogger('visits');
const never = new AbortController().signal;
const away = () => new StorageError('unavailable', 'the store cannot be reached');

it('asks a store that does not answer three times, gives back the rest, and asks the others all the same', async () => {
  const asked: string[] = [];
  const visit = (store: string, name: string, error?: Error) => ({
    store,
    name,
    ask: async () => {
      asked.push(name);
      if (error) throw error;
    },
  });
  const visits = new StoreVisits(log, 'cannot ask');
  const left = await visits.make(
    [
      ...[1, 2, 3, 4, 5].map(n => visit('dead', `dead-${n}`, away())),
      visit('alive', 'alive-1', new StorageError('not_found', 'it is gone')),
      visit('alive', 'alive-2', new Error('a defect')),
      visit('alive', 'alive-3', away()),
      visit('alive', 'alive-4', away()),
      visit('alive', 'alive-5'),
      visit('alive', 'alive-6', away()),
      visit('alive', 'alive-7'),
    ],
    never,
  );
  expect(asked.filter(name => name.startsWith('dead'))).toEqual(['dead-1', 'dead-2', 'dead-3']);
  expect(asked.filter(name => name.startsWith('alive'))).toHaveLength(7);
  expect(left.map(({ name }) => name)).toEqual(['dead-4', 'dead-5']);
  expect(visits.silent).toEqual(['dead']);
});

it('waits for one store in nobody else’s turn, and gives back what a stop has left', async () => {
  const stop = new AbortController();
  const asked: string[] = [];
  const visit = (store: string, name: string) => ({
    store,
    name,
    ask: async () => {
      asked.push(name);
      if (name === 'hanging')
        await new Promise<void>((_, reject) => stop.signal.addEventListener('abort', () => reject(away())));
    },
  });
  const made = new StoreVisits(log, 'cannot ask').make(
    [visit('hung', 'hanging'), visit('quick', 'first'), visit('hung', 'never'), visit('quick', 'second')],
    stop.signal,
  );
  await vi.waitFor(() => expect(asked).toEqual(['hanging', 'first', 'second']));
  stop.abort();
  expect((await made).map(({ name }) => name)).toEqual(['hanging', 'never']);
});
