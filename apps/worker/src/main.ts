import '#platform/process/require-node';
import 'reflect-metadata';
import { runProcess } from '#platform/process/boot';
import { REQUIRED } from '#platform/process/platform.module';
import { startWorker } from './worker.js';

await runProcess('worker', REQUIRED, startWorker);
