/**
 * libuv's pool runs file calls, DNS and the hashes of passwords. A file system that hangs keeps the threads of its calls for
 * good, up to a limit of its own (LANES in libs/backends/src/reflink/file-system-calls.ts): two may do so at a time and leave
 * more than a third of these.
 */
export const THREAD_POOL_SIZE = 48;

/** How many libuv has. */
// biome-ignore lint/style/noProcessEnv: libuv's, and no setting of ours
export const threadPoolSize = (): number => Number(process.env.UV_THREADPOOL_SIZE) || 4;

/** Call it before anything else: libuv reads it when its first work comes. A size that the caller gives stays. */
export function widenThreadPool(): void {
  // biome-ignore lint/style/noProcessEnv: libuv's, and no setting of ours
  process.env.UV_THREADPOOL_SIZE ??= String(THREAD_POOL_SIZE);
}
