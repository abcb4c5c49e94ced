import { type Answer, persistWhile } from '#test/crash/persist';
import type { TestAppliance } from '#test/support/appliance';
import { CSP_PASSWORD } from '#test/support/block-folders';

/** `code`: the HTTP status, or UNREACHABLE, IN_PROGRESS for a volume that is not complete, GONE for 204 and 404 of a DELETE. */
export interface Reply extends Answer {
  // biome-ignore lint/suspicious/noExplicitAny: what came over the wire
  body: any;
  retryAfter: boolean;
}

/** A refusal that says `Retry-After`, or no answer: the caller comes again. */
export const isPassing = ({ code, retryAfter }: Answer & Partial<Reply>): boolean =>
  code === 'UNREACHABLE' || code === 'IN_PROGRESS' || retryAfter === true;

export const persist = (call: () => Promise<Reply>, limitMs = 60_000): Promise<Reply[]> =>
  persistWhile(isPassing, call, limitMs);

/** The last answer, which must be a success. */
export async function must(call: () => Promise<Reply>, limitMs?: number): Promise<Reply> {
  const last = (await persist(call, limitMs)).at(-1)!;
  if (!['200', '204', 'GONE'].includes(last.code)) throw new Error(`${last.code}: ${last.message}`);
  return last;
}

export interface Host {
  name: string;
  uuid: string;
  iqns: string[];
}

export const hostOf = (name: string, suffix = ''): Host => ({
  name,
  uuid: `uuid-of-${name}`,
  iqns: [`iqn.2026-11.example:${name}${suffix}`],
});

/** What an orchestrator asks for over the REST API, of whichever gateway is named at that moment: that which was started last. */
export class BlockJobs {
  private token: string | undefined;

  constructor(private readonly appliance: Pick<TestAppliance, 'cspUrl'>) {}

  async create(name: string, size: number, more: Record<string, unknown> = {}): Promise<Reply> {
    const reply = await this.call('POST', '/volumes', { name, size, ...more });
    return reply.body?.config?.background_operation_status === 'InProgress' ? { ...reply, code: 'IN_PROGRESS' } : reply;
  }

  cloneOfSnapshot(name: string, snapshotId: string, size: number): Promise<Reply> {
    return this.create(name, size, { clone: true, base_snapshot_id: snapshotId });
  }

  cloneOfVolume(name: string, volumeId: string, size: number): Promise<Reply> {
    return this.create(name, size, { clone: true, parent_volume_id: volumeId });
  }

  expand(id: string, size: number): Promise<Reply> {
    return this.call('PUT', `/volumes/${id}`, { size });
  }

  delete(id: string, force = false): Promise<Reply> {
    return this.gone(`/volumes/${id}?force=${force}`);
  }

  host(host: Host): Promise<Reply> {
    return this.call('POST', '/hosts', { ...host, networks: [] });
  }

  publish(id: string, host: Host): Promise<Reply> {
    return this.call('PUT', `/volumes/${id}/actions/publish`, { host_uuid: host.uuid, access_protocol: 'iscsi' });
  }

  unpublish(id: string, host: Host): Promise<Reply> {
    return this.call('PUT', `/volumes/${id}/actions/unpublish`, { host_uuid: host.uuid });
  }

  snapshot(volumeId: string, name: string): Promise<Reply> {
    return this.call('POST', '/snapshots', { name, volume_id: volumeId });
  }

  deleteSnapshot(id: string): Promise<Reply> {
    return this.gone(`/snapshots/${id}`);
  }

  volumeGroup(name: string): Promise<Reply> {
    return this.call('POST', '/volume_groups', { name });
  }

  join(volumeId: string, groupId: string): Promise<Reply> {
    return this.call('PUT', `/volumes/${volumeId}`, { volume_group_id: groupId });
  }

  snapshotGroup(groupId: string, name: string): Promise<Reply> {
    return this.call('POST', '/snapshot_groups', { name, volume_group_id: groupId });
  }

  deleteSnapshotGroup(id: string): Promise<Reply> {
    return this.gone(`/snapshot_groups/${id}`);
  }

  get(path: string): Promise<Reply> {
    return this.call('GET', path);
  }

  private async gone(path: string): Promise<Reply> {
    const reply = await this.call('DELETE', path);
    return reply.code === '204' || reply.code === '404' ? { ...reply, code: 'GONE' } : reply;
  }

  private async call(method: string, path: string, body?: object): Promise<Reply> {
    try {
      this.token ??= await this.login();
      return await this.send(method, path, body, { 'x-auth-token': this.token });
    } catch (error) {
      return { code: 'UNREACHABLE', message: String(error), body: undefined, retryAfter: true };
    }
  }

  private async login(): Promise<string> {
    const { code, body } = await this.send('POST', '/tokens', { username: 'csp', password: CSP_PASSWORD }, {});
    if (code !== '200') throw new Error(`login: ${code}`);
    return body.session_token;
  }

  private async send(method: string, path: string, body: object | undefined, headers: object): Promise<Reply> {
    const response = await fetch(`${this.appliance.cspUrl}/containers/v1${path}`, {
      method,
      headers: { ...(body ? { 'content-type': 'application/json' } : {}), ...headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await response.text();
    const value = text === '' ? undefined : JSON.parse(text);
    return {
      code: String(response.status),
      message: value?.errors?.[0]?.message ?? '',
      body: value,
      retryAfter: response.headers.has('retry-after'),
    };
  }
}
