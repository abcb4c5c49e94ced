import '#platform/require-node';
import 'reflect-metadata';
import { runProcess } from '#platform/boot';
import { startGateway } from './gateway.js';
import { REQUIRED } from './gateway-parts.js';

await runProcess('gateway', REQUIRED, startGateway);
