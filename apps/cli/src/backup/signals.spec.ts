import { expect, it } from 'vitest';
import type { ReaderApi } from '../csp/reader-api.js';
import { MetadataStream } from './metadata-stream.js';
import { SnapshotDisk } from './snapshot-disk.js';

/** Of something that is made and never ready; `asked` resolves when it is asked for once more. */
function unready(thing: object) {
  const asked = Promise.withResolvers<void>();
  const call = async (method: string, path: string) => {
    if (method === 'GET' && path.includes('/made')) asked.resolve();
    return path.startsWith('hosts') ? [] : thing;
  };
  const api = { call, csp: call, find: async () => undefined } as unknown as ReaderApi;
  return { api, asked: asked.promise };
}

const names = { clone: 'read', hostName: 'host', hostUuid: 'uuid' };

it.each([
  [
    'clone',
    { id: 'made', config: { background_operation_status: 'Running' } },
    (api: ReaderApi, signal: AbortSignal) => SnapshotDisk.open(api, 'snapshot', names, signal),
  ],
  [
    'session',
    { name: 'made', sessionState: 'Pending' },
    (api: ReaderApi, signal: AbortSignal) => new MetadataStream(api, ['snapshot'], undefined, signal).open(),
  ],
] as const)('the wait for a %s ends with the reason of a signal', async (_, thing, open) => {
  const { api, asked } = unready(thing);
  const controller = new AbortController();
  const opened = open(api, controller.signal);
  opened.catch(() => {});
  await asked;
  const reason = new Error('the signal');
  controller.abort(reason);
  await expect(opened).rejects.toBe(reason);
});
