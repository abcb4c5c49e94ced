import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Keyring } from '#platform/crypto/kek';
import { decodeSealed, encodeSealed, SecretBox, type SecretPlace } from '#platform/crypto/secrets';

const old = { id: 'old', key: randomBytes(32) };
const current = { id: 'current', key: randomBytes(32) };
const box = new SecretBox(new Keyring([current, old]));

const word = fc.string({ unit: 'grapheme', maxLength: 20 });
const place = fc.record<SecretPlace>({ tenantId: word, table: word, rowId: word, column: word });
const secret = fc.uint8Array({ maxLength: 300 });

describe('sealed secrets', () => {
  it('open to what was sealed, through the encoding', () => {
    fc.assert(
      fc.property(secret, place, (plaintext, at) => {
        const bytes = encodeSealed(box.seal(plaintext, at));
        expect(box.open(decodeSealed(bytes), at).equals(Buffer.from(plaintext))).toBe(true);
        if (plaintext.length > 8) expect(bytes.includes(Buffer.from(plaintext))).toBe(false);
      }),
      { numRuns: 200 },
    );
  });

  it('do not open in another place, nor when characters move between its parts', () => {
    fc.assert(
      fc.property(secret, place, place, (plaintext, at, other) => {
        fc.pre(JSON.stringify(at) !== JSON.stringify(other));
        const sealed = box.seal(plaintext, at);
        expect(() => box.open(sealed, other)).toThrow(/does not open/);
        const rest = { ...at, table: `${at.table}x`, rowId: at.rowId };
        expect(() => box.open(sealed, rest)).toThrow(/does not open/);
      }),
      { numRuns: 200 },
    );
    const at = { tenantId: 't', table: 'ab', rowId: 'c', column: 'd' };
    expect(() => box.open(box.seal('x', at), { ...at, table: 'a', rowId: 'bc' })).toThrow(/does not open/);
  });

  it.each(['tenantId', 'table', 'rowId', 'column'] as const)(
    'do not open, and are not rewrapped, with only %s changed',
    part => {
      const at = { tenantId: 't', table: 'a', rowId: 'r', column: 'c' };
      const moved = { ...at, [part]: 'x' };
      const sealed = new SecretBox(new Keyring([old])).seal('secret', at);
      expect(() => box.open(sealed, moved)).toThrow(/does not open/);
      // Who rewraps does not read the value: here the key alone tells that it was moved.
      expect(() => box.rewrap(sealed, moved)).toThrow(/does not open/);
    },
  );

  it('do not open with any byte changed', () => {
    fc.assert(
      fc.property(secret, place, fc.nat(), fc.integer({ min: 1, max: 255 }), (plaintext, at, where, flip) => {
        const bytes = encodeSealed(box.seal(plaintext, at));
        bytes[where % bytes.length]! ^= flip;
        expect(() => box.open(decodeSealed(bytes), at)).toThrow();
      }),
      { numRuns: 300 },
    );
  });

  it('do not open when the value of another secret is put beside the key of this one', () => {
    const at = { tenantId: 't', table: 'a', rowId: 'r', column: 'c' };
    const one = box.seal('one', at);
    const two = box.seal('two', at);
    expect(() => box.open({ ...two, kekId: one.kekId, wrappedKey: one.wrappedKey }, at)).toThrow(/does not open/);
  });

  it('are rewrapped without touching the value, and then need only the new key', () => {
    fc.assert(
      fc.property(secret, place, (plaintext, at) => {
        const before = new SecretBox(new Keyring([old])).seal(plaintext, at);
        expect(box.needsRewrap(before)).toBe(true);
        const after = box.rewrap(before, at);
        expect(after.ciphertext).toBe(before.ciphertext);
        expect(after.kekId).toBe('current');
        expect(box.rewrap(after, at)).toBe(after);
        const onlyNew = new SecretBox(new Keyring([current]));
        expect(onlyNew.open(after, at).equals(Buffer.from(plaintext))).toBe(true);
        expect(() => onlyNew.open(before, at)).toThrow(/key old.*does not hold/);
        expect(() => box.rewrap(before, { ...at, rowId: `${at.rowId}x` })).toThrow(/does not open/);
      }),
      { numRuns: 100 },
    );
  });

  it('never use a key or an iv twice', () => {
    const at = { tenantId: 't', table: 'a', rowId: 'r', column: 'c' };
    const seals = Array.from({ length: 200 }, () => box.seal('same', at));
    for (const part of ['wrappedKey', 'iv', 'ciphertext'] as const) {
      expect(new Set(seals.map(sealed => sealed[part].toString('hex'))).size).toBe(200);
    }
  });

  it('say no secret in their errors, and refuse what is cut off or of another version', () => {
    const at = { tenantId: 't', table: 'backend', rowId: 'r', column: 'credentials' };
    const bytes = encodeSealed(box.seal('cAnArY', at));
    expect(() => decodeSealed(bytes.subarray(0, 40))).toThrow(/cut off/);
    expect(() => decodeSealed(Buffer.alloc(0))).toThrow(/version/);
    expect(() => decodeSealed(Buffer.concat([Buffer.from([9]), bytes.subarray(1)]))).toThrow(/version/);
    try {
      box.open(decodeSealed(bytes), { ...at, rowId: 'other' });
      expect.unreachable();
    } catch (error) {
      expect(String(error)).toContain('backend.credentials');
      expect(String(error)).not.toContain('cAnArY');
    }
  });
});
