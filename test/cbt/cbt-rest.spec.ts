import 'reflect-metadata';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ChangesModule } from '#cbt/changes.module';
import { StorageError } from '#platform/errors';
import { Health } from '#platform/health/health';
import {
  CAPACITY,
  DELETED,
  ELSEWHERE,
  openRoom,
  type Room,
  S1,
  S2,
  TENANT,
  TOKEN,
  UNCOVERED,
  UNKNOWN,
} from '#test/cbt/in-process-server';
import { synthetic } from '#test/cbt/memory-changes';
import { createHttp } from '../../apps/gateway/src/http.js';

const LOGIN = 'login-token';
let room: Room;
let app: NestFastifyApplication;
let port: number;

beforeEach(async () => {
  room = await openRoom({ stallMs: 1_000 });
  const { changes, sessions, streams, log: logger } = room;
  const logins = {
    authenticate: async (token: string) => (token === LOGIN ? ({ tenantId: TENANT } as never) : undefined),
  };
  const api = { changes, sessions, streams, logger, logins, stallMs: 1_000 };
  app = await createHttp({ health: new Health(), imports: [ChangesModule.register({ useFactory: () => api })] });
  await app.listen(0, '127.0.0.1');
  port = Number(new URL(await app.getUrl()).port);
});
afterEach(async () => {
  await room.close();
  await app.close();
});

async function open(path: string, headers: Record<string, string> = { 'x-auth-token': LOGIN }) {
  const request = get({ host: '127.0.0.1', port, path: `/cbt/v1/snapshots/${path}`, headers, agent: false });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return response;
}

interface Read {
  status: number;
  text: string;
  lines: Record<string, unknown>[];
  broken: boolean;
}

async function read(path: string, headers?: Record<string, string>): Promise<Read> {
  const response = await open(path, headers);
  let text = '';
  let broken = false;
  try {
    for await (const chunk of response.setEncoding('utf8')) text += chunk;
  } catch {
    broken = true;
  }
  const lines = text
    .split('\n')
    .filter(Boolean)
    .map(json => JSON.parse(json));
  return { status: response.statusCode!, text, lines, broken };
}

const HEAD = { capacity_bytes: CAPACITY, block_metadata_type: 'VARIABLE_LENGTH' };

describe('changed blocks over REST', () => {
  it('come as lines of JSON, the last of which says that nothing is missing', async () => {
    expect((await read(`${S1}/allocated`)).lines).toEqual([
      HEAD,
      {
        ranges: [
          [0, 4_096],
          [2 ** 20, 65_536],
          [2 ** 40, 512],
        ],
      },
      { complete: true },
    ]);
    const { lines } = await read(`${S2}/changes?base=${DELETED}&starting_offset=4096&max_results=1`);
    expect(lines).toEqual([
      HEAD,
      { ranges: [[2 * 2 ** 20, 65_536]] },
      { ranges: [[2 ** 40, 512]] },
      { complete: true },
    ]);
    expect((await read(`${S1}/changes?base=${S1}`)).lines).toEqual([HEAD, { complete: true }]);
    expect((await read(`snap-1/allocated?starting_offset=${CAPACITY}`)).lines).toEqual([HEAD, { complete: true }]);
  });

  it('are for who is logged in, and for the token of a session that covers them', async () => {
    const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
    expect((await read(`${S1}/allocated`, bearer(TOKEN))).status).toBe(200);
    expect((await read(`snap-2/changes?base=snap-1`, bearer(TOKEN))).status).toBe(200);
    expect((await read(`${UNCOVERED}/allocated`)).status).toBe(200);
    const refused = await Promise.all([
      read(`${UNCOVERED}/allocated`, bearer(TOKEN)),
      read(`${UNKNOWN}/allocated`, bearer(TOKEN)),
      read(`${S1}/allocated`, bearer('b'.repeat(52))),
      read(`${S1}/changes`, {}),
    ]);
    expect(refused.map(({ status }) => status)).toEqual([404, 404, 401, 401]);
    expect(refused[0]!.text.replace(UNCOVERED, UNKNOWN)).toBe(refused[1]!.text);
    expect(refused[3]!.text).toBe(refused[2]!.text);
  });

  it.each([
    [`${UNKNOWN}/allocated`, 404],
    [`nobody/allocated`, 404],
    [`${DELETED}/allocated`, 404],
    [`${S1}/changes?base=${UNKNOWN}`, 404],
    [`${S1}/changes`, 422],
    [`${S1}/changes?base=${S2}`, 422],
    [`${S2}/changes?base=${ELSEWHERE}`, 422],
    [`${S1}/changes?base=`, 422],
    [`${S1}/allocated?max_results=-9223372036854775808`, 422],
    [`${S1}/allocated?starting_offset=-9223372036854775808`, 416],
    [`${S2}/changes?base=${S1}&starting_offset=9223372036854775807`, 416],
    [`${S1}/allocated?base=${S2}`, 422],
    [`${S1}/allocated?max_results=-1`, 422],
    [`${S1}/allocated?max_results=many`, 422],
    [`${S1}/allocated?max_results=1&max_results=2`, 422],
    [`${S1}/allocated?starting_offset=1e3`, 422],
    [`${S1}/allocated?starting_offset=-1`, 416],
    [`${S1}/allocated?starting_offset=${CAPACITY + 1}`, 416],
    [`${S1}/allocated?starting_offset=18446744073709551615`, 416],
  ])('%s is refused with %i', async (path, status) => {
    const answer = await read(path);
    expect(answer.status).toBe(status);
    expect(answer.lines[0]).toMatchObject({ status, type: 'about:blank' });
  });

  it('break off when the source breaks, with the reason and without an end', async () => {
    room.changes.failAfter = { batches: 1, error: new StorageError('unavailable', 'the database is gone') };
    const { lines, broken, status } = await read(`${S1}/allocated`);
    expect(status).toBe(200);
    expect(lines.at(-1)).toEqual({ error: 'the database is gone' });
    expect(lines.some(line => 'complete' in line)).toBe(false);
    expect(broken).toBe(true);
  });

  it('are refused with a status when they break before the first line', async () => {
    for (const [kind, status] of [
      ['failed_precondition', 409],
      ['unavailable', 503],
      // A backend that refuses us is nothing that the caller's token could mend.
      ['unauthenticated', 503],
      ['permission_denied', 503],
      ['unimplemented', 501],
    ] as const) {
      room.changes.broken = new StorageError(kind, 'do a full backup');
      expect((await read(`${S2}/changes?base=${S1}`)).status, kind).toBe(status);
    }
  });

  it('wait for a reader, and end when it leaves or reads nothing', async () => {
    room.changes.snapshots.set(S1, { ...room.changes.snapshots.get(S1)!, capacityBytes: 2 ** 45 });
    room.changes.batches = from => synthetic(20_000_000, from);
    const leaving = await open(`${S1}/allocated`);
    await once(leaving, 'readable');
    expect(room.changes.pulled).toBeLessThan(200);
    leaving.destroy();
    await vi.waitFor(() => expect(room.changes.closed).toBe(1));
    const stalling = await open(`${S1}/allocated`);
    stalling.on('error', () => {});
    await vi.waitFor(() => expect(room.changes.closed).toBe(2), { timeout: 5_000 });
    expect(room.log.text.at(-1)).toContain('RESOURCE_EXHAUSTED');
    stalling.destroy();
  });

  it('end when the process stops', async () => {
    room.changes.snapshots.set(S1, { ...room.changes.snapshots.get(S1)!, capacityBytes: 2 ** 45 });
    room.changes.batches = from => synthetic(20_000_000, from);
    const response = await open(`${S1}/allocated`);
    let last = '';
    const ended = (async () => {
      for await (const chunk of response.setEncoding('utf8')) last = (last + chunk).slice(-200);
    })().catch(() => 'broken');
    await vi.waitFor(() => expect(last).not.toBe(''));
    await room.streams.stop(5_000);
    expect(await ended).toBe('broken');
    expect(last).toMatch(/\{"error":"this server is stopping.*\}\n$/);
    expect((await read(`${S1}/allocated`)).status).toBe(503);
  });

  it('leave no token in the log', async () => {
    await read(`${S1}/allocated`, { authorization: `Bearer ${TOKEN}` });
    await vi.waitFor(() => expect(room.log.lines.length).toBe(1));
    expect(room.log.text.join()).not.toContain(TOKEN);
  });
});
