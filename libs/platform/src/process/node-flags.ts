/**
 * How gateway and worker are started, everywhere: the launcher, the image, the systemd units. V8 sizes its heap by the
 * machine; on 24 GiB it lets garbage of a storm of repeated calls grow the gateway by 250 MiB, with these by 50 MiB
 * (same rate; the live heap is below 70 MiB). Buffers count, too: a heap that grows by less is marked anew for every 16 MiB of
 * messages, which took more than half of the processor time of a stream of changed blocks. Of a gateway's time a range took
 * 110 ns without the last flag, 60 with it, 48 if the heap may double, which has the gateway grow by 102 MiB instead of 64;
 * that was before such a stream had its own garbage collected (young-garbage.ts).
 * Maps of sources are switched on by the program itself (bundle.mjs), which has one small map; those of all files took a tenth of a start and 8 MiB.
 */
export const NODE_FLAGS = ['--max-old-space-size=256', '--max-semi-space-size=8', '--heap-growing-percent=60'] as const;

/**
 * A connector's: what it holds are buffers, outside of V8's heap, and what it does is libuv's and OpenSSL's. Code that V8 optimizes,
 * and the threads that do it, took 5 MiB and saved no time.
 */
const connectorFlags = (heapMiB: number) =>
  [`--max-old-space-size=${heapMiB}`, '--max-semi-space-size=1', '--no-opt', '--v8-pool-size=0'] as const;

export const CONNECTOR_FLAGS = connectorFlags(64);

/**
 * One with TRIVET_KUBERNETES. The client of Kubernetes takes 4 MiB of a heap (25 as a package), and objects are parsed as a whole: 20 of a page and 16
 * that are decided, a quarter of a MiB each at most.
 */
export const SESSION_CONNECTOR_FLAGS = connectorFlags(128);

/**
 * And its environment. Each thread of libuv's pool would have an arena of glibc's malloc, whose free memory no other uses: 2 to 5 MiB of a
 * connector with sessions, in which one thread does nearly everything.
 */
export const CONNECTOR_ENVIRONMENT = { MALLOC_ARENA_MAX: '1' } as const;
