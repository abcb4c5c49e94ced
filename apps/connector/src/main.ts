import '#platform/process/require-node';
import { runProcess } from '#platform/process/boot';
import { startConnector } from './connector.js';

await runProcess('connector', ['TRIVET_GATEWAYS', 'TRIVET_CONNECTOR_SOCKETS'], startConnector, { isLight: true });
