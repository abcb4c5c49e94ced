import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { HTTP_STATUSES } from '#csp/csp-errors';
import { DEFAULT_WAITS } from '#csp/csp-options';
import { ERROR_KINDS, type ErrorKind, StorageError } from '#platform/errors';
import { registry } from '#platform/metrics/metrics';
import type { BlockCaller } from '#storage/block/block-storage';
import { type Ask, HttpClient } from '#test/csp/client';
import { CODES, expectRefusal, MIB } from '#test/csp/conformance/context';
import { openRoom, type Room } from '#test/csp/in-process-target';

const ROOT = '/containers/v1';
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

describe('the CSP room', () => {
  let room: Room;
  let http: HttpClient;
  let token: string;
  beforeEach(async () => {
    room = await openRoom();
    http = new HttpClient(room.url);
    token = await login();
  });
  afterEach(async () => {
    http.close();
    await room.close();
  });

  async function login(username = room.username, password = room.password): Promise<string> {
    const { body } = await http.ask('POST', `${ROOT}/tokens`, { body: { username, password } });
    return body.session_token;
  }
  const ask = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}, more: Ask = {}) =>
    http.ask(method, ROOT + path, { body, headers: { 'x-auth-token': token, ...headers }, ...more });
  const create = (name = 'pvc', changes: object = {}) => ask('POST', '/volumes', { name, size: MIB, ...changes });

  /** Every way into the domain: a call of it, and the method that it ends in. */
  async function routes() {
    const { id } = (await create('routes')).body;
    const snapshot = (await ask('POST', '/snapshots', { name: 's', volume_id: id })).body;
    const group = (await ask('POST', '/volume_groups', { name: 'g' })).body;
    const cut = (await ask('POST', '/snapshot_groups', { name: 'c', volume_group_id: group.id })).body;
    const host = { name: 'n', uuid: 'host-1', iqns: [room.initiator] };
    await ask('POST', '/hosts', host);
    const clone = { name: 'clone', clone: true, base_snapshot_id: snapshot.id };
    const publish = { host_uuid: 'host-1', access_protocol: 'iscsi' };
    return [
      ['POST', '/hosts', host, 'putHost', 'other'],
      ['GET', '/hosts', undefined, 'listHosts', 'other'],
      ['DELETE', '/hosts/host-1', undefined, 'deleteHost', 'other'],
      ['GET', '/volumes', undefined, 'listVolumes', 'other'],
      ['GET', '/volumes?name=routes', undefined, 'findVolume', 'other'],
      ['GET', `/volumes/${id}`, undefined, 'getVolume', 'other'],
      ['POST', '/volumes', { name: 'v', size: MIB }, 'createVolume', 'createVolume'],
      ['POST', '/volumes', clone, 'createVolume', 'cloneVolume'],
      ['PUT', `/volumes/${id}`, { description: 'd' }, 'updateVolume', 'other'],
      ['DELETE', `/volumes/${id}`, undefined, 'deleteVolume', 'other'],
      ['PUT', `/volumes/${id}/actions/publish`, publish, 'publish', 'publish'],
      ['PUT', `/volumes/${id}/actions/unpublish`, { host_uuid: 'host-1' }, 'unpublish', 'unpublish'],
      ['GET', `/snapshots?volume_id=${id}`, undefined, 'listSnapshots', 'other'],
      ['GET', `/snapshots/${snapshot.id}`, undefined, 'getSnapshot', 'other'],
      ['POST', '/snapshots', { name: 't', volume_id: id }, 'createSnapshot', 'createSnapshot'],
      ['DELETE', `/snapshots/${snapshot.id}`, undefined, 'deleteSnapshot', 'other'],
      ['GET', '/volume_groups', undefined, 'listVolumeGroups', 'other'],
      ['GET', `/volume_groups/${group.id}`, undefined, 'getVolumeGroup', 'other'],
      ['GET', `/snapshot_groups?volume_group_id=${group.id}`, undefined, 'listSnapshotGroups', 'other'],
      ['GET', `/snapshot_groups/${cut.id}`, undefined, 'getSnapshotGroup', 'other'],
      ['POST', '/snapshot_groups', { name: 'd', volume_group_id: group.id }, 'createSnapshotGroup', 'createSnapshot'],
    ] as const;
  }

  describe('errors', () => {
    it('have the status of their kind, on every route', async () => {
      for (const [method, path, body, enters] of await routes()) {
        for (const kind of ERROR_KINDS.filter(value => value !== 'aborted')) {
          room.storage.before = called => {
            if (called === enters) throw new StorageError(kind, 'pool default is in the way');
          };
          const answer = await ask(method, path, body);
          expectRefusal(answer, HTTP_STATUSES[kind], 'pool default is in the way');
          expect(answer.headers['retry-after']).toBe(answer.status === 503 ? '2' : undefined);
        }
      }
    });

    it('say busy as each route may', async () => {
      const statuses: Record<string, number> = {};
      for (const [method, path, body, enters] of await routes()) {
        room.storage.before = called => {
          if (called === enters) throw new StorageError('aborted', 'busy with another operation');
        };
        const answer = await ask(method, path, body);
        expectRefusal(answer, answer.status, 'busy');
        expect(answer.headers['retry-after']).toBe('2');
        statuses[enters] = answer.status;
      }
      const others = Object.keys(statuses).map(name => [name, 409]);
      const special = { createSnapshot: 503, createSnapshotGroup: 503, unpublish: 500 };
      expect(statuses).toEqual({ ...Object.fromEntries(others), ...special });
    });

    it('for want of room have the words that the driver looks for', async () => {
      room.storage.capacity = 0n;
      const answer = await create();
      expectRefusal(answer, 507, 'insufficient storage space');
      expect(answer.body.errors[0].message.match(/insufficient storage space/g)).toHaveLength(1);
    });

    it('that nobody mapped are 500 with an id that the log explains', async () => {
      room.storage.before = () => {
        throw new TypeError('cannot read key hunter2');
      };
      const answer = await create();
      expectRefusal(answer, 500, /^internal error, quote [-0-9a-f]{36}$/);
      const line = room.log.lines.at(-1)!;
      expect(line).toMatchObject({ level: 'error', fields: { code: 500, err: expect.any(TypeError) } });
      expect(answer.text).toContain(line.fields.errorId);
    });

    it('of who cannot say who calls are 503, not 401', async () => {
      room.sessions.down = true;
      expectRefusal(await ask('GET', '/volumes'), 503, 'database');
    });

    it('of too many logins are 429, with when to come again', async () => {
      room.sessions.throttledFor = 17;
      const answer = await http.ask('POST', `${ROOT}/tokens`, { body: { username: 'csp', password: 'x' } });
      expectRefusal(answer, 429, '17 s');
      expect(answer.headers['retry-after']).toBe('17');
    });
  });

  describe('the caller', () => {
    const seen = async (method: string, path: string, body: unknown, enters: string, headers = {}) => {
      const { promise, resolve } = Promise.withResolvers<BlockCaller>();
      room.storage.before = (called, caller) => {
        if (called === enters) resolve(caller);
      };
      await ask(method, path, body, headers);
      return promise;
    };

    it('waits as long as its route says', async () => {
      for (const [method, path, body, enters, wait] of await routes()) {
        const before = Date.now();
        const { deadline } = await seen(method, path, body, enters);
        expect(deadline - before, `${method} ${path}`).toBeGreaterThanOrEqual(DEFAULT_WAITS[wait]);
        expect(deadline - before, `${method} ${path}`).toBeLessThan(DEFAULT_WAITS[wait] + 5_000);
      }
      expect(DEFAULT_WAITS).toEqual({
        createVolume: 20_000,
        cloneVolume: 10_000,
        createSnapshot: 25_000,
        publish: 50_000,
        unpublish: 50_000,
        other: 25_000,
      });
    });

    it('is of the tenant and backend of its session, or of the backend that it names', async () => {
      const list = (headers = {}) => seen('GET', '/volumes', undefined, 'listVolumes', headers);
      expect(await list()).toMatchObject({ tenantId: 'tenant-1', backendId: 'backend-1', backendKind: 'memory' });
      expect(await list({ 'x-array-ip': 'second' })).toMatchObject({ tenantId: 'tenant-1', backendId: 'backend-2' });
      expect(await list({ 'x-array-ip': '10.10.10.1' })).toMatchObject({ backendId: 'backend-1' });
      token = await login('csp@other', 'other horse');
      expect(await list()).toMatchObject({ tenantId: 'tenant-2' });
    });

    it('brings its trace, if it is one', async () => {
      const trace = async (traceparent: string) =>
        (await seen('GET', '/volumes', undefined, 'listVolumes', { traceparent })).traceparent;
      expect(await trace(TRACE)).toBe(TRACE);
      expect(await trace(`${TRACE}-x`)).toBeUndefined();
    });

    it('is seen leaving while its work goes on', async () => {
      const { promise: entered, resolve: enter } = Promise.withResolvers<BlockCaller>();
      const { promise: free, resolve: letGo } = Promise.withResolvers<void>();
      room.storage.before = (called, caller) => {
        if (called !== 'createVolume') return undefined;
        enter(caller);
        return free;
      };
      const leave = new AbortController();
      const call = ask('POST', '/volumes', { name: 'left', size: MIB }, {}, { signal: leave.signal });
      const { signal } = await entered;
      expect(signal?.aborted).toBe(false);
      leave.abort();
      await expect(call).rejects.toThrow();
      await vi.waitFor(() => expect(signal?.aborted).toBe(true));
      letGo();
      await vi.waitFor(() => expect([...room.storage.volumes.values()]).toMatchObject([{ name: 'left' }]));
    });

    it('that got its answer has not left', async () => {
      const { signal } = await seen('POST', '/volumes', { name: 'v', size: MIB }, 'createVolume', {
        connection: 'close',
      });
      await ask('GET', '/volumes');
      expect(signal?.aborted).toBe(false);
    });

    it('sees nothing of another tenant or another backend', async () => {
      const { id } = (await create()).body;
      const elsewhere = { 'x-array-ip': 'second' };
      expectRefusal(await ask('GET', `/volumes/${id}`, undefined, elsewhere), 404);
      expectRefusal(await ask('DELETE', `/volumes/${id}?force=true`, undefined, elsewhere), 404);
      token = await login('csp@other', 'other horse');
      expectRefusal(await ask('GET', `/volumes/${id}`), 404);
      expectRefusal(await ask('GET', '/volumes?name=pvc'), 404);
      expect((await ask('GET', '/volumes')).body).toEqual([]);
    });

    it('who may only look changes nothing, and may log out', async () => {
      const calls = await routes();
      token = await login('viewer', 'only looking');
      for (const [method, path, body] of calls) {
        const answer = await ask(method, path, body);
        if (method === 'GET') expect(answer.status).toBe(200);
        else expectRefusal(answer, 403, 'viewer');
      }
      const session = room.sessions.live.get(token)!;
      expect((await ask('DELETE', `/tokens/${session.id}`)).status).toBe(204);
      expect((await ask('GET', '/volumes')).status).toBe(401);
    });
  });

  it('asks the domain for no name that nothing can have', async () => {
    const asked: string[] = [];
    room.storage.before = method => {
      asked.push(method);
    };
    for (const name of ['', '%00', 'a%0Ab', 'n'.repeat(300)]) {
      for (const path of [
        'volumes?name=',
        'volumes/',
        'snapshots?name=',
        'snapshots/',
        'volume_groups?name=',
        'hosts/',
      ])
        if (name !== '' || path.endsWith('=')) expect((await ask('GET', `/${path}${name}`)).status).toBe(404);
      expect(await ask('GET', `/hosts?uuid=${name}`)).toMatchObject({ status: 200, body: [] });
      expect(await ask('GET', `/snapshots?volume_id=${name}`)).toMatchObject({ status: 200, body: [] });
    }
    expect(asked).toEqual([]);
  });

  describe('volumes', () => {
    it.each(['9007199254740991', '9007199254740993', '9223372036854775807'])('of %s bytes keep them', async digits => {
      for (const size of [digits, `"${digits}"`]) {
        const answer = await http.ask('POST', `${ROOT}/volumes`, {
          body: `{"name":"n-${size.length}","size":${size},"config":{"budget":12345678901234567890}}`,
          headers: { 'x-auth-token': token },
        });
        expect(answer.text).toContain(`"size":${digits},`);
        expect(answer.text).toContain('"budget":"12345678901234567890"');
        room.storage.volumes.clear();
      }
    });

    it('that are still being copied say so', async () => {
      const { id } = (await create()).body;
      room.storage.volumes.get(id)!.ready = false;
      const { body } = await ask('GET', `/volumes/${id}`);
      expect(body.config.background_operation_status).toBe('InProgress');
      await ask('POST', '/hosts', { name: 'n', uuid: 'host-1', iqns: [room.initiator] });
      const publish = { host_uuid: 'host-1', access_protocol: 'iscsi' };
      expectRefusal(await ask('PUT', `/volumes/${id}/actions/publish`, publish), 409, 'not complete');
    });

    it('over Fibre Channel have no target', async () => {
      room.storage.accessProtocols = ['iscsi', 'fc'];
      const { id } = (await create()).body;
      await ask('POST', '/hosts', { name: 'n', uuid: 'host-1', wwpns: ['10000090fa424101'] });
      const publish = { host_uuid: 'host-1', access_protocol: 'FC' };
      const { status, body } = await ask('PUT', `/volumes/${id}/actions/publish`, publish);
      expect({ status, keys: Object.keys(body) }).toEqual({
        status: 200,
        keys: ['access_protocol', 'lun_id', 'serial_number'],
      });
    });
  });

  describe('logs and metrics', () => {
    it('leave a line and a measurement for each call', async () => {
      room.storage.operation = { id: 'operation-1', outcome: { state: 'succeeded', result: null } };
      const count = async () => {
        const text = await registry.getSingleMetricAsString('trivet_csp_call_duration_seconds');
        return Number(
          /_count\{method="POST",route="\/containers\/v1\/volumes",code="200"\} (\d+)/.exec(text)?.[1] ?? 0,
        );
      };
      const before = await count();
      const { id } = (await create()).body;
      expect(await count()).toBe(before + 1);
      await ask('GET', `/volumes/${id}`);
      await ask('GET', '/volumes/none');
      expect(room.log.lines.slice(-3)).toMatchObject([
        {
          level: 'info',
          fields: {
            method: 'POST',
            route: '/containers/v1/volumes',
            code: 200,
            tenantId: 'tenant-1',
            username: 'csp',
            operationId: 'operation-1',
            durationMs: expect.any(Number),
          },
        },
        { level: 'debug', fields: { route: '/containers/v1/volumes/:id', id } },
        { level: 'info', fields: { code: 404, reason: 'Volume with id none not found.' } },
      ]);
      await ask('GET', `/nothing/${id}`);
      const text = await registry.getSingleMetricAsString('trivet_csp_call_duration_seconds');
      expect(text).toContain('route="/containers/v1/volumes/:id"');
      expect(text).toContain('route="unknown"');
      expect(text).not.toContain(id);
    });

    it('hold no password, no token and nothing of a body', async () => {
      await ask('POST', '/hosts', {
        name: 'node-canary',
        uuid: 'host-1',
        iqns: [room.initiator],
        chap_user: 'user',
        chap_password: 'pass-word-1234',
      });
      await http.ask('POST', `${ROOT}/tokens`, { body: { username: 'csp', password: 'wrong horse' } });
      const lines = JSON.stringify(room.log.lines);
      expect(room.log.lines).toHaveLength(3);
      for (const secret of [token, room.password, 'wrong horse', 'pass-word-1234', 'canary'])
        expect(lines).not.toContain(secret);
    });
  });

  it('has its second address where it is told', async () => {
    const other = await openRoom({ contextPath: 'storage/v2.1', waits: { other: 1 } });
    const client = new HttpClient(other.url);
    const body = { username: other.username, password: other.password };
    const statusAt = async (prefix: string) =>
      (await client.ask('POST', `${prefix}/containers/v1/tokens`, { body })).status;
    expect(await statusAt('/storage/v2.1')).toBe(200);
    expect(await statusAt('')).toBe(200);
    expect(await statusAt('/csp')).toBe(404);
    expect(await statusAt('/storage/v2x1')).toBe(404);
    const unknown = await client.ask('GET', '/storage/v2.1/containers/v1/nothing');
    expectRefusal(unknown, 404);
    client.close();
    await other.close();
  });

  it('knows a word for every status that it answers', () => {
    const kinds: Record<ErrorKind, number> = HTTP_STATUSES;
    for (const status of Object.values(kinds)) expect(CODES).toHaveProperty(String(status));
    expect(Object.values(kinds)).not.toContain(401);
  });
});
