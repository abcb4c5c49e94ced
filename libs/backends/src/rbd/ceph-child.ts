/**
 * The process that talks to one cluster: librados and librbd abort the process they are in when they find themselves in a
 * state that they hold for impossible, and a call that hangs keeps its thread. It gets its orders, the key among them, over
 * the channel to its parent, and ends with it.
 */
import type { ForeignError } from '#backends/linux/foreign';
import { CEPH_METHODS } from '#backends/rbd/ceph-methods';
import type { CephAnswer, CephOrder } from '#backends/rbd/ceph-process';

async function obey({ id, method, args }: CephOrder): Promise<CephAnswer> {
  try {
    const run = CEPH_METHODS[method] as (...values: unknown[]) => Promise<unknown>;
    return { id, result: await run(...args) };
  } catch (error) {
    const { message, code, syscall } = error as ForeignError;
    return { id, error: { message, code, syscall } };
  }
}

process.on('message', (order: CephOrder) => {
  void obey(order).then(answer => process.send?.(answer));
});
// Calls under way keep their threads, and would keep the process.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
for (const name of ['SIGINT', 'SIGHUP'] as const) process.on(name, () => {});
