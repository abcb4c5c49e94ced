import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StorageError } from '#platform/errors';
import { type Answer, type CbtClient, rangesOf } from '#test/cbt/client';
import {
  CAPACITY,
  DELETED,
  ELSEWHERE,
  openRoom,
  type Room,
  S1,
  S2,
  S3,
  TENANT,
  TOKEN,
  UNCOVERED,
  UNKNOWN,
  VOLUME,
} from '#test/cbt/in-process-server';
import { message, type Value } from '#test/cbt/wire';

type Request = Record<number, Value>;

interface Face {
  name: string;
  client(room: Room): CbtClient;
  allocatedPath: string;
  deltaPath: string;
  variableLength: bigint;
  signed: boolean;
  hasToken: boolean;
  allocated(snapshot: string, more?: { offset?: Value; max?: Value; token?: string }): Request;
  delta(base: string, target: string, more?: { offset?: Value; max?: Value; token?: string }): Request;
}

const draft = (name: string, path: string, client: Face['client']): Face => ({
  name,
  client,
  allocatedPath: `${path}/GetAllocated`,
  deltaPath: `${path}/GetDelta`,
  variableLength: 1n,
  signed: false,
  hasToken: true,
  allocated: (snapshot, { offset = 0, max = 0, token = TOKEN } = {}) => ({
    1: token,
    2: VOLUME,
    3: snapshot,
    4: offset,
    5: max,
  }),
  delta: (base, target, { offset = 0, max = 0, token = TOKEN } = {}) => ({
    1: token,
    2: VOLUME,
    3: base,
    4: target,
    5: offset,
    6: max,
  }),
});

const FACES: Face[] = [
  {
    name: 'snapshotmetadata over TLS',
    client: room => room.overTls,
    allocatedPath: '/snapshotmetadata.SnapshotMetadata/GetMetadataAllocated',
    deltaPath: '/snapshotmetadata.SnapshotMetadata/GetMetadataDelta',
    variableLength: 2n,
    signed: true,
    hasToken: true,
    allocated: (snapshot, { offset = 0, max = 0, token = TOKEN } = {}) => ({
      1: token,
      2: 'acme',
      3: snapshot,
      4: offset,
      5: max,
    }),
    delta: (base, target, { offset = 0, max = 0, token = TOKEN } = {}) => ({
      1: token,
      2: 'acme',
      3: base,
      4: target,
      5: offset,
      6: max,
    }),
  },
  {
    name: 'csi.v1 on the socket',
    client: room => room.overSocket,
    allocatedPath: '/csi.v1.SnapshotMetadata/GetMetadataAllocated',
    deltaPath: '/csi.v1.SnapshotMetadata/GetMetadataDelta',
    variableLength: 2n,
    signed: true,
    hasToken: false,
    allocated: (snapshot, { offset = 0, max = 0 } = {}) => ({ 1: snapshot, 2: offset, 3: max }),
    delta: (base, target, { offset = 0, max = 0 } = {}) => ({ 1: base, 2: target, 3: offset, 4: max }),
  },
  draft('the draft without a package, over TLS', '/SnapshotMetadata', room => room.overTls),
  draft('the draft in csi.v1, over TLS', '/csi.v1.SnapshotMetadata', room => room.overTls),
  draft('the draft in csi.v1, on the socket', '/csi.v1.SnapshotMetadata', room => room.overSocket),
];

let room: Room;
beforeEach(async () => {
  room = await openRoom();
});
afterEach(() => room.close());

describe.each(FACES)('$name', face => {
  const allocated = (snapshot: string, more?: { offset?: Value; max?: Value; token?: string }): Promise<Answer> =>
    face.client(room).call(face.allocatedPath, face.allocated(snapshot, more));
  const delta = (
    base: string,
    target: string,
    more?: { offset?: Value; max?: Value; token?: string },
  ): Promise<Answer> => face.client(room).call(face.deltaPath, face.delta(base, target, more));
  const codes = async (...answers: Promise<Answer>[]) => (await Promise.all(answers)).map(({ code }) => code);

  it('answers what is allocated, with type and capacity', async () => {
    const answer = await allocated(S1);
    expect(answer).toMatchObject({ code: 'OK', messages: [{ type: face.variableLength, capacity: BigInt(CAPACITY) }] });
    expect(rangesOf(answer)).toEqual([
      [0n, 4_096n],
      [2n ** 20n, 65_536n],
      [2n ** 40n, 512n],
    ]);
  });

  it('answers what changed, of a deleted base as well', async () => {
    for (const base of [S1, DELETED]) {
      const answer = await delta(base, S2);
      expect(answer.code).toBe('OK');
      expect(rangesOf(answer)[1]).toEqual([2n * 2n ** 20n, 65_536n]);
    }
  });

  it('sends no message when there is nothing', async () => {
    const expected = { code: 'OK', messages: [] };
    expect(await delta(S2, S2)).toMatchObject(expected);
    expect(await allocated(S1, { offset: CAPACITY })).toMatchObject(expected);
  });

  it('puts at most max_results into a message, and type and capacity into each', async () => {
    const answer = await allocated(S1, { max: 2 });
    expect(answer.messages.map(({ ranges }) => ranges.length)).toEqual([2, 1]);
    expect(new Set(answer.messages.map(({ type, capacity }) => `${type} ${capacity}`)).size).toBe(1);
    expect((await allocated(S1, { max: 2_147_483_647 })).messages.length).toBe(1);
  });

  it('begins with the range that reaches beyond the offset', async () => {
    expect(rangesOf(await allocated(S1, { offset: 4_095 })).length).toBe(3);
    expect(rangesOf(await allocated(S1, { offset: 4_096 })).length).toBe(2);
    expect(rangesOf(await delta(S1, S3, { offset: 2 ** 40 + 511 })).length).toBe(1);
  });

  it('refuses offsets that are not in the volume, of any size', async () => {
    const beyond = [BigInt(CAPACITY) + 1n, 2n ** 53n + 1n, 2n ** 62n, 2n ** 63n - 1n];
    const offsets = face.signed ? [...beyond, -1n, -(2n ** 63n)] : [...beyond, 2n ** 63n, 2n ** 64n - 1n];
    for (const offset of offsets) {
      expect(await codes(allocated(S1, { offset }), delta(S1, S2, { offset })), String(offset)).toEqual([
        'OUT_OF_RANGE',
        'OUT_OF_RANGE',
      ]);
      if (offset > 0n) expect((await allocated(S1, { offset })).details).toContain(` ${offset} `);
    }
  });

  it('takes limits of any size, but not below zero', async () => {
    if (face.signed)
      expect(await codes(allocated(S1, { max: -1n }), delta(S1, S2, { max: -2_147_483_648n }))).toEqual([
        'INVALID_ARGUMENT',
        'INVALID_ARGUMENT',
      ]);
    else expect(await codes(allocated(S1, { max: 4_294_967_295 }))).toEqual(['OK']);
  });

  it('refuses a request without its snapshots', async () => {
    expect(await codes(allocated(''), delta('', S1), delta(S1, ''))).toEqual(Array(3).fill('INVALID_ARGUMENT'));
  });

  it('refuses a base that is no predecessor', async () => {
    expect(await codes(delta(S2, S1), delta(ELSEWHERE, S2))).toEqual(['INVALID_ARGUMENT', 'INVALID_ARGUMENT']);
  });

  it('does not find a snapshot that was deleted, but as a base', async () => {
    expect(await codes(allocated(DELETED), delta(S1, DELETED))).toEqual(['NOT_FOUND', 'NOT_FOUND']);
  });

  it('says when only a full backup will do, and when a repeat will', async () => {
    room.changes.broken = new StorageError('failed_precondition', 'the step is broken');
    expect(await delta(S1, S2)).toMatchObject({ code: 'FAILED_PRECONDITION', details: 'the step is broken' });
    room.changes.broken = new StorageError('unavailable', 'not yet');
    expect((await delta(S1, S2)).code).toBe('UNAVAILABLE');
    // A backend that refuses us is nothing that the caller's token could mend.
    room.changes.broken = new StorageError('unauthenticated', 'who are you');
    expect((await delta(S1, S2)).code).toBe('UNAVAILABLE');
  });

  it('tells of a defect by an id alone', async () => {
    room.changes.failAfter = { batches: 0, error: new Error('password is hunter2') };
    const answer = await allocated(S1);
    expect(answer).toMatchObject({ code: 'INTERNAL', messages: [] });
    expect(answer.details).toMatch(/^internal error, quote [0-9a-f-]{36}$/);
  });

  it('never ends a stream with OK that broke in the middle', async () => {
    room.changes.failAfter = { batches: 1, error: new StorageError('unavailable', 'the database is gone') };
    const answer = await allocated(S1);
    expect(answer).toMatchObject({ code: 'UNAVAILABLE', details: 'the database is gone' });
    expect(rangesOf(answer).length).toBe(3);
    expect(room.changes.closed).toBe(room.changes.opened);
  });

  it('refuses what is no message, and reads past what it does not know', async () => {
    const client = face.client(room);
    expect((await client.call(face.allocatedPath, Buffer.from([0x0a, 0xff]))).code).toBe('INVALID_ARGUMENT');
    const unknown = Buffer.concat([message(face.allocated(S1)), message({ 99: 'new', 100: 7 })]);
    expect((await client.call(face.allocatedPath, unknown)).code).toBe('OK');
  });

  it.runIf(face.hasToken)('lets in nobody without a token, whatever else is wrong', async () => {
    const none = { token: '' };
    expect(await codes(allocated(S1, none), delta(S2, S1, none))).toEqual(Array(2).fill('INVALID_ARGUMENT'));
    for (const token of ['b'.repeat(52), TOKEN.slice(1), '\u0000'])
      expect(
        await codes(
          allocated(S1, { token }),
          allocated('', { token }),
          allocated(UNKNOWN, { token, offset: 2n ** 62n }),
          delta(S2, S1, { token }),
        ),
        token,
      ).toEqual(Array(4).fill('UNAUTHENTICATED'));
  });

  it.runIf(face.hasToken)(
    'tells a token that is not good from a snapshot that its session does not cover',
    async () => {
      const expired = await allocated(S1, { token: 'b'.repeat(52) });
      expect(expired).toMatchObject({
        code: 'UNAUTHENTICATED',
        details: 'the session token is invalid or has expired',
      });
      // The draft takes both for one.
      const code = face.name.startsWith('the draft') ? 'UNAUTHENTICATED' : 'NOT_FOUND';
      for (const id of [UNCOVERED, UNKNOWN]) {
        const details = `the session is valid, but does not cover a snapshot ${id}`;
        expect(await allocated(id)).toMatchObject({ code, details });
        expect(await delta(id, S1)).toMatchObject({ code, details });
        expect(await delta(S1, id)).toMatchObject({ code, details });
      }
    },
  );

  it.runIf(face.hasToken)('takes a name for a snapshot', async () => {
    expect(await codes(allocated('snap-1'), delta('snap-1', 'snap-2'))).toEqual(['OK', 'OK']);
  });

  it.runIf(!face.hasToken)('does not find what is not there, another tenant’s or no id at all', async () => {
    room.changes.add({ ...room.changes.snapshots.get(S1)!, id: UNKNOWN, tenantId: 'tenant-2' });
    const ids = [UNKNOWN, `${UNKNOWN.slice(0, -1)}8`, 'snap-1', 'x'.repeat(10_000), '\u{1f600}'];
    for (const id of ids) expect(await codes(allocated(id), delta(id, S1)), id).toEqual(['NOT_FOUND', 'NOT_FOUND']);
  });

  it('writes no token and no secret into its log', async () => {
    const secrets = message({
      [face.deltaPath.endsWith('GetMetadataDelta') ? 5 : 9]: message({ 1: 'key', 2: 'hunter2' }),
    });
    await face.client(room).call(face.deltaPath, Buffer.concat([message(face.delta(S1, S2)), secrets]));
    await allocated(S1);
    await allocated('');
    expect(room.log.lines.length).toBe(3);
    expect(room.log.text.join('\n')).not.toMatch(/hunter2|aaaaaaaa/);
    expect(room.log.text[1]).toContain(TENANT);
  });
});

describe('the TLS door', () => {
  it('serves neither csi.v1 nor its identity', async () => {
    const { code } = await room.overTls.call('/csi.v1.SnapshotMetadata/GetMetadataAllocated', { 1: S1 });
    expect(code).toBe('UNIMPLEMENTED');
    await expect(room.overTls.unary('/csi.v1.Identity/GetPluginInfo')).rejects.toMatchObject({ code: 12 });
  });

  it('takes the name of the session’s tenant for its namespace, and no other', async () => {
    const path = '/snapshotmetadata.SnapshotMetadata/GetMetadataAllocated';
    expect((await room.overTls.call(path, { 1: TOKEN, 2: 'other', 3: S1 })).code).toBe('UNAUTHENTICATED');
    expect((await room.overTls.call(path, { 1: TOKEN, 3: S1 })).code).toBe('INVALID_ARGUMENT');
  });
});

describe('the draft', () => {
  it('knows a snapshot as one of its volume only', async () => {
    const path = '/SnapshotMetadata/GetAllocated';
    const of = async (volume: string, snapshot: string) =>
      (await room.overTls.call(path, { 1: TOKEN, 2: volume, 3: snapshot })).code;
    expect(await of(UNKNOWN, S1)).toBe('NOT_FOUND');
    expect(await of(UNKNOWN, 'snap-1')).toBe('NOT_FOUND');
    expect(await of(VOLUME, ELSEWHERE)).toBe('NOT_FOUND');
    expect(await of('', S1)).toBe('INVALID_ARGUMENT');
    expect(await of(VOLUME, 'snap-1')).toBe('OK');
  });
});

describe('the CSI socket', () => {
  it('says who it is and what it can', async () => {
    const { overSocket } = room;
    const info = await overSocket.unary('/csi.v1.Identity/GetPluginInfo');
    expect(info).toEqual(message({ 1: 'csi.example.test', 2: '1.2.3' }));
    const capabilities = await overSocket.unary('/csi.v1.Identity/GetPluginCapabilities');
    expect(capabilities).toEqual(message({ 1: message({ 1: message({ 1: 4 }) }) }));
    expect(await overSocket.unary('/csi.v1.Identity/Probe')).toEqual(message({ 1: message({ 1: 1 }) }));
  });

  it.each(['', 'csi.v1.SnapshotMetadata', 'snapshotmetadata.SnapshotMetadata'])(
    'tells the health of %j',
    async name => {
      const check = () => room.overSocket.unary('/grpc.health.v1.Health/Check', { 1: name });
      expect(await check()).toEqual(message({ 1: 1 }));
      room.server.setReady(false);
      expect(await check()).toEqual(message({ 1: 2 }));
    },
  );
});
