import '#platform/process/require-node';
import 'reflect-metadata';
import { runProcess } from '#platform/process/boot';
import { REQUIRED } from '#platform/process/platform.module';
import { startGateway } from './gateway.js';

await runProcess('gateway', REQUIRED, startGateway);
