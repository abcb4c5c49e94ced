import { createRequire } from 'node:module';

/** Loaded where Redis is used, as its client is (redis.ts). */
export const bullmq = (): typeof import('bullmq') => createRequire(import.meta.url)('bullmq');
