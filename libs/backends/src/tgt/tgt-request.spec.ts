import { describe, expect, it } from 'vitest';
import * as requests from '#backends/tgt/tgt-request';
import { decodeReply, describeRequest, encodeRequest, type TgtRequest } from '#backends/tgt/tgt-request';

/**
 * What tgtadm 1.0.85 sent for the same requests, taken from its socket: bytes 0 to 15, 72 to 119, and the parameters. It
 * fills the field of the driver, between them, with zeros.
 */
const NOWHERE = '0000000000000000ffffffffffffffff000000000000000000000000000000000000000000000000';
const TAIL = '000000000000000000000000000000000000000000000000';
const GOLDEN: Readonly<Record<string, readonly [TgtRequest, string, string, string]>> = {
  'target new': [
    requests.newTarget(7, 'iqn.2026-11.dev.trivet:v7'),
    '0100000000000000',
    `9d00000007000000${NOWHERE}`,
    'targetname=iqn.2026-11.dev.trivet:v7\0',
  ],
  'target show': [requests.showTargets(), '0100000002000000', `78000000ffffffff${NOWHERE}`, ''],
  'target bind': [
    requests.bindInitiator(7, 'iqn.2026-11.example:host'),
    '0100000003000000',
    `a000000007000000${NOWHERE}`,
    'initiator-name=iqn.2026-11.example:host\0',
  ],
  'target unbind': [
    requests.unbindInitiator(7, 'iqn.2026-11.example:host'),
    '0100000004000000',
    `a000000007000000${NOWHERE}`,
    'initiator-name=iqn.2026-11.example:host\0',
  ],
  'unit new': [
    requests.newUnit(7, 1, '/pool/v7.img'),
    '0200000000000000',
    `960000000700000000000000000000000100000000000000${TAIL}`,
    'path=/pool/v7.img,bstype=rdwr\0',
  ],
  'unit update': [
    requests.updateUnit(7, 1, [
      ['online', '0'],
      ['path', '/pool/v7.img'],
      ['online', '1'],
    ]),
    '0200000005000000',
    `a70000000700000000000000000000000100000000000000${TAIL}`,
    'targetOps online=0,path=/pool/v7.img,online=1,\0',
  ],
  'unit delete': [
    requests.deleteUnit(7, 1),
    '0200000001000000',
    `780000000700000000000000000000000100000000000000${TAIL}`,
    '',
  ],
  'account new': [
    requests.newAccount('u1', '0123456789ab'),
    '0700000000000000',
    `96000000ffffffff${NOWHERE}`,
    'user=u1,password=0123456789ab\0',
  ],
  'account bind': [requests.bindAccount(7, 'u1'), '0700000003000000', `8000000007000000${NOWHERE}`, 'user=u1\0'],
  'account unbind': [requests.unbindAccount(7, 'u1'), '0700000004000000', `8000000007000000${NOWHERE}`, 'user=u1\0'],
  'account delete': [requests.deleteAccount('u1'), '0700000001000000', `80000000ffffffff${NOWHERE}`, 'user=u1\0'],
  'account show': [requests.showAccounts(), '0700000002000000', `78000000ffffffff${NOWHERE}`, ''],
  'connection show': [requests.showConnections(7), '0600000002000000', `7800000007000000${NOWHERE}`, ''],
  'connection delete': [
    requests.deleteConnection(7, 3, 1),
    '0600000001000000',
    '78000000070000000300000000000000ffffffffffffffff010000000000000000000000000000000000000000000000',
    '',
  ],
  'portal show': [requests.showPortals(), '0300000002000000', `78000000ffffffff${NOWHERE}`, ''],
  'portal new': [
    requests.newPortal('127.0.0.1:3261'),
    '0300000000000000',
    `99000000ffffffff${NOWHERE}`,
    'portalOps portal=127.0.0.1:3261,\0',
  ],
  'portal delete': [
    requests.deletePortal('127.0.0.1:3261'),
    '0300000001000000',
    `99000000ffffffff${NOWHERE}`,
    'portalOps portal=127.0.0.1:3261,\0',
  ],
  'system show': [requests.showSystem(), '0000000002000000', `78000000ffffffff${NOWHERE}`, ''],
};

describe('requests', () => {
  it.each(Object.entries(GOLDEN))('%s is what tgtadm sends', (_name, [request, start, middle, parameters]) => {
    const bytes = encodeRequest(request);
    expect(bytes.toString('hex', 0, 16)).toBe(`${start}6973637369000000`);
    expect(bytes.subarray(16, 72).every(byte => byte === 0)).toBe(true);
    expect(bytes.toString('hex', 72, 120)).toBe(middle);
    expect(bytes.toString('latin1', 120)).toBe(parameters);
    expect(bytes.readUInt32LE(72)).toBe(bytes.length);
  });

  it('take no value that would end a parameter', () => {
    expect(() => requests.newUnit(1, 1, '/pool/a,b')).toThrow(RangeError);
    expect(() => requests.bindInitiator(1, 'iqn.x:a,initiator-name=ALL')).toThrow(RangeError);
    expect(() => requests.newAccount('a,password=x', 'y')).toThrow(RangeError);
    expect(() => requests.newAccount('a', 'y\0z')).toThrow(RangeError);
    expect(() => encodeRequest(requests.newUnit(1, 1, `/${'x'.repeat(8192)}`))).toThrow(RangeError);
  });

  it('take a password with commas', () => {
    expect(encodeRequest(requests.newAccount('u1', 'a,b=c')).toString('latin1', 120)).toBe('user=u1,password=a,b=c\0');
  });

  it('are described without what they carry', () => {
    expect(describeRequest(requests.newAccount('u1', '0123456789ab'))).toBe('new account');
    expect(describeRequest(requests.newUnit(7, 1, '/p'))).toBe('new unit 7');
  });
});

describe('replies', () => {
  const reply = (error: number, text: string): Buffer => {
    const bytes = Buffer.alloc(8 + text.length);
    bytes.writeUInt32LE(error, 0);
    bytes.writeUInt32LE(bytes.length, 4);
    bytes.write(text, 8, 'latin1');
    return bytes;
  };

  it('are whole before they are read', () => {
    const whole = reply(0, 'Target 1: a\n\0');
    for (let length = 0; length < whole.length; length++)
      expect(decodeReply(whole.subarray(0, length))).toBeUndefined();
    expect(decodeReply(whole)).toEqual({ error: 0, text: 'Target 1: a\n' });
  });

  it('may be an error or nothing', () => {
    expect(decodeReply(reply(4, ''))).toEqual({ error: 4, text: '' });
    expect(decodeReply(reply(0, ''))).toEqual({ error: 0, text: '' });
  });
});
