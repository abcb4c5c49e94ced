import { expect, it } from 'vitest';
import { isUuid, uuidv7 } from '#platform/uuid';

it('gives ids of version 7 that begin with the time, and none twice, however many', () => {
  const now = Date.UTC(2026, 0, 1);
  const ids = Array.from({ length: 2_000 }, () => uuidv7(now));
  expect(new Set(ids).size).toBe(ids.length);
  const time = now.toString(16).padStart(12, '0');
  for (const id of ids) {
    expect(isUuid(id)).toBe(true);
    expect(id.replace('-', '').slice(0, 12)).toBe(time);
    expect(id).toMatch(/^.{14}7.{4}[89ab]/);
  }
});
