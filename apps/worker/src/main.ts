import '#platform/require-node';
import 'reflect-metadata';
import { runProcess } from '#platform/boot';
import { REQUIRED, startWorker } from './worker.js';

await runProcess('worker', REQUIRED, startWorker);
