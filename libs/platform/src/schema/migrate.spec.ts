import { expect, it } from 'vitest';
import { ConfigError } from '#platform/config/config';
import { migrate } from '#platform/schema/migrate';

it.each(['127.0.0.1', 'localhost'])('says in one line that no database answers at %s', async host => {
  const failure: unknown = await migrate(`postgresql://trivet_owner:a-secret@${host}:1/trivet`).catch(error => error);
  expect(failure).toBeInstanceOf(ConfigError);
  const { message } = failure as ConfigError;
  expect(message).toMatch(/^TRIVET_DATABASE_OWNER_URL: cannot connect to PostgreSQL at \w[\w.]*:1: .*ECONNREFUSED.*$/);
  expect(message).not.toContain('a-secret');
});
