import { expect, it } from 'vitest';
import { portalAddress } from './portal-address.js';

it.each([
  ['192.0.2.7', { host: '192.0.2.7', port: 3260 }],
  ['fd00::7', { host: 'fd00::7', port: 3260 }],
  ['127.0.0.1:23456', { host: '127.0.0.1', port: 23456 }],
  ['[::1]:23456', { host: '::1', port: 23456 }],
  ['storage.example', { host: 'storage.example', port: 3260 }],
])('finds the way to %s', (given, expected) => {
  expect(portalAddress(given)).toEqual(expected);
});
