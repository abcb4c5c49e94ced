import { expect, it } from 'vitest';
import { sessionCookie } from '#admin/tenants/session-cookie';

it('a login over TLS goes back over TLS alone', () => {
  const ends = new Date('2026-11-20T12:00:00Z');
  const plain = 'trivet_session=abc; Path=/; HttpOnly; SameSite=Strict';
  expect(sessionCookie('abc', false, ends)).toBe(`${plain}; Expires=Fri, 20 Nov 2026 12:00:00 GMT`);
  expect(sessionCookie('abc', true, ends)).toBe(`${plain}; Secure; Expires=Fri, 20 Nov 2026 12:00:00 GMT`);
});
