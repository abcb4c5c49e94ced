import { hostname } from 'node:os';
import type { Config } from '#platform/config/config';

/** Of several gateways of one host each has a port of its own, and after a restart the same one. */
export const gatewayName = ({
  TRIVET_HOST,
  TRIVET_HTTP_LISTEN: { port },
}: Pick<Config, 'TRIVET_HOST' | 'TRIVET_HTTP_LISTEN'>): string => `${TRIVET_HOST ?? hostname()}:${port}`;
