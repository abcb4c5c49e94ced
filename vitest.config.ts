import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/longest-first.js';

/** Sources, not dist: Node's subpath imports point at what is built. */
const alias = [
  { find: /^#test\/(.*)$/, replacement: `${import.meta.dirname}/test/$1.ts` },
  { find: /^#(\w+)\/(.*)$/, replacement: `${import.meta.dirname}/libs/$1/src/$2.ts` },
];
/** As gateway and worker have it (THREAD_POOL_SIZE). */
const env = { UV_THREADPOOL_SIZE: '48' };
const common = { oxc: { decorator: { legacy: true, emitDecoratorMetadata: true } }, resolve: { alias } };

/** Tests of what tests use, which need no parts either. */
const ofTools = ['test/failpoints/**/*.spec.ts', 'test/fakes/**/*.spec.ts'];

/** unit needs nothing but Node; the others need the parts that `./trivet test` starts. */
export default defineConfig({
  ...common,
  test: {
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    exclude: ['**/node_modules/**', '**/dist/**', '**/.trivet/**'],
    projects: [
      {
        ...common,
        test: {
          name: 'unit',
          env,
          include: ['libs/**/*.spec.ts', 'apps/**/*.spec.ts', ...ofTools],
          exclude: ['**/*.parts.spec.ts'],
        },
      },
      {
        ...common,
        test: {
          name: 'parts',
          env,
          include: ['libs/**/*.parts.spec.ts', 'test/**/*.spec.ts'],
          exclude: ofTools,
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
