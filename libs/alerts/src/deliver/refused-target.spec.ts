import { expect, it } from 'vitest';
import { refusedTarget } from '#alerts/deliver/refused-target';
import type { Target } from '#alerts/messages/target';
import { OuterAddresses } from '#platform/config/outer-addresses';

const own = new OuterAddresses([{ address: '10.1.0.0', bits: 16 }]);
const mail = (host: string, security: 'tls' | 'starttls' | 'none'): Target => ({
  kind: 'smtp',
  host,
  port: 25,
  security,
  from: 'trivet@example.com',
  to: ['ann@example.com'],
});

it('a public mail server is taken with TLS alone', async () => {
  expect(await refusedTarget(own, mail('1.1.1.1', 'tls'))).toBeUndefined();
  expect(await refusedTarget(own, mail('1.1.1.1', 'starttls'))).toBeUndefined();
  expect(await refusedTarget(own, mail('1.1.1.1', 'none'))).toMatch(/^1.1.1.1 would be reached without TLS/);
  expect(await refusedTarget(own, mail('10.1.2.3', 'none'))).toBeUndefined();
});
