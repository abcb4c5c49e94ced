import { connectRedis } from '#platform/connections/redis';
import { type Finding, fail, findings, ok, warn } from './check.js';
import { ask } from './database.js';

const OLDEST_POSTGRES = 150_000;
const TESTED_POSTGRES = 18;
const CLOCK_SECONDS = 2;
const REDIS_MS = 5_000;
const MUTE = 'it takes the connection, and ends it or gives no answer';
/** What ioredis says of such a one. */
const CUT = /isn't writeable|Connection is closed|EPIPE|ECONNRESET/;

const FACTS = `
  SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS version,
         extract(epoch FROM clock_timestamp())::float8 AS clock, current_setting('fsync') AS fsync,
         current_setting('max_connections')::int AS connections,
         (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user) AS bypasses`;

export function checkPostgres(url: string): Promise<Finding[]> {
  return findings('postgres', 'see the log of postgres, or TRIVET_DATABASE_URL', async () => {
    return postgresFindings(await ask<PostgresFacts>(url, FACTS), Date.now() / 1000);
  });
}

export interface PostgresFacts {
  number: number;
  version: string;
  clock: number;
  fsync: string;
  connections: number;
  bypasses: boolean;
}

export function postgresFindings(facts: PostgresFacts, now: number): Finding[] {
  const found: Finding[] = [];
  const { number, version } = facts;
  if (number < OLDEST_POSTGRES) found.push(fail('postgres', version, 'PostgreSQL 15 is the oldest supported'));
  else if (Math.floor(number / 10_000) > TESTED_POSTGRES) found.push(warn('postgres', version, '18 is the one tested'));
  else found.push(ok('postgres', version));
  const skew = Math.abs(facts.clock - now);
  if (skew > CLOCK_SECONDS) {
    found.push(warn('clock', `the database is ${skew.toFixed(1)} s away`, 'let both hosts follow one time server'));
  }
  if (facts.fsync !== 'on') {
    found.push(fail('postgres', 'fsync is off', 'an acknowledged operation may be lost: turn it on'));
  }
  if (facts.bypasses) {
    found.push(
      fail('postgres', 'the application role can bypass row security', 'use a role without SUPERUSER and BYPASSRLS'),
    );
  }
  if (facts.connections < 50)
    found.push(warn('postgres', `max_connections is ${facts.connections}`, 'allow at least 50'));
  return found;
}

export function checkRedis(url: string): Promise<Finding[]> {
  if (url === 'none') return Promise.resolve([ok('redis', 'none: operations are dispatched by PostgreSQL alone')]);
  return findings(
    'redis',
    'see the log of redis, or TRIVET_REDIS_URL; meanwhile PostgreSQL alone dispatches',
    async () => {
      let cause: Error | undefined;
      const redis = connectRedis(url, 'ring', error => {
        if (!CUT.test(error.message)) cause = error;
      });
      try {
        await new Promise<void>((resolve, reject) => {
          redis.once('ready', resolve);
          setTimeout(() => reject(cause ?? new Error(MUTE)), REDIS_MS).unref();
        });
        const setting = async (name: string): Promise<string> =>
          ((await redis.config('GET', name)) as string[])[1] ?? '';
        const version = /redis_version:(\S+)/.exec(await redis.info('server'))?.[1] ?? 'unknown';
        return redisFindings(await setting('maxmemory-policy'), await setting('appendonly'), version);
      } catch (error) {
        throw CUT.test((error as Error).message) ? new Error(MUTE) : error;
      } finally {
        redis.disconnect();
      }
    },
  );
}

/** Below the first the queue does not work, below the second it is not tested by those who make it. */
const REDIS = { oldest: 5, good: 6.2 };

export function redisFindings(policy: string, appendOnly: string, version: string): Finding[] {
  const found: Finding[] = [];
  const number = Number(/^\d+\.\d+/.exec(version)?.[0] ?? 0);
  if (number < REDIS.oldest) found.push(fail('redis', `version ${version}`, `use ${REDIS.good} or newer`));
  else if (number < REDIS.good) found.push(warn('redis', `version ${version}`, `use ${REDIS.good} or newer`));
  if (policy !== 'noeviction') {
    found.push(
      warn('redis', `maxmemory-policy is ${policy}`, 'set noeviction: queued jobs may vanish, and are then late'),
    );
  }
  if (appendOnly !== 'yes') found.push(warn('redis', 'appendonly is off', 'turn it on: jobs are late after a restart'));
  return found.length > 0 ? found : [ok('redis', `${version}, noeviction, append-only`)];
}

/** @param setting that has its address */
export function checkObjectStore(endpoint: string, setting: string): Promise<Finding[]> {
  return findings('object store', `see its log, or ${setting}`, async () => {
    const answer = await fetch(endpoint, { signal: AbortSignal.timeout(5_000) });
    await answer.body?.cancel();
    if (answer.status < 500) return [ok('object store', `${endpoint} answers`)];
    return [fail('object store', `${endpoint} answers ${answer.status}`, 'see its log')];
  });
}

/** Readiness names what is missing; its body goes through as it is. */
export function checkReady(name: string, listen: string): Promise<Finding[]> {
  return findings(name, `see the log of the ${name}`, async () => {
    const answer = await fetch(`http://${listen}/readyz`, { signal: AbortSignal.timeout(5_000) });
    const body = (await answer.text()).trim();
    return [answer.ok ? ok(name, 'ready') : fail(name, `not ready: ${body}`, `see the log of the ${name}`)];
  });
}
