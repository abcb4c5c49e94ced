import { hostname } from 'node:os';
import { expect, it } from 'vitest';
import { gatewayName } from './gateway-name.js';

const named = (port: number, host?: string) =>
  gatewayName({ TRIVET_HOST: host, TRIVET_HTTP_LISTEN: { host: '127.0.0.1', port } });

it('two gateways of one host have two names', () => {
  expect(named(8740, 'one')).toBe('one:8740');
  expect(named(8750, 'one')).toBe('one:8750');
  expect(named(8740)).toBe(`${hostname()}:8740`);
});
