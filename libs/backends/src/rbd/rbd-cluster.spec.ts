import { expect, it } from 'vitest';
import { addressOf, allClientsOf } from '#backends/rbd/rbd-cluster';

it.each([
  ['10.0.0.2:0/2244251624', '10.0.0.2', '10.0.0.2:0/0'],
  ['v1:10.0.0.2:0/12', '10.0.0.2', '10.0.0.2:0/0'],
  ['[v2:10.0.0.2:0/12,v1:10.0.0.2:0/12]', '10.0.0.2', '10.0.0.2:0/0'],
  ['v2:[fd00::2]:0/12', 'fd00::2', '[fd00::2]:0/0'],
  ['[v2:[fd00::2]:0/12,v1:[fd00::2]:0/12]', 'fd00::2', '[fd00::2]:0/0'],
])('%s is a client of %s', (clients, address, all) => {
  expect(addressOf(clients)).toBe(address);
  expect(allClientsOf(address)).toBe(all);
});

it('is unknown where the cluster has not seen it', () => {
  expect(addressOf('-')).toBeUndefined();
});
