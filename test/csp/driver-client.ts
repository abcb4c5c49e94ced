import {
  type DriverPublication,
  type DriverReply,
  type DriverSnapshot,
  type DriverVolume,
  decode,
  decodeList,
  PUBLICATION,
  SNAPSHOT,
  send,
  TOKEN,
  VOLUME,
} from '#test/csp/driver-wire';

/**
 * A client with the habits of the shipping HPE driver, as far as a provider can see them (docs/callers.md#calls-of-the-hpe-csi-driver): bare JSON, a
 * new connection for each call, a JSON content type whether or not there is a body, names pasted unescaped into queries,
 * lookups before creation, a login on every 401, and an error variable that survives the repeat after it.
 */
export interface DriverOptions {
  /** In its cluster: `http://host:port`, and `backend` goes into array_ip and x-array-ip. */
  service?: string;
  /** Outside: `https://host:port/csp`; array_ip is empty then. */
  array?: string;
  backend: string;
  username: string;
  password: string;
}

export interface DriverNode {
  name: string;
  uuid: string;
  iqns: string[];
  networks: string[];
  chap_user?: string;
  chap_password?: string;
}

export type { DriverPublication, DriverReply, DriverSnapshot, DriverVolume } from '#test/csp/driver-wire';

export class DriverError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const MAX_LOGINS = 5;

export class RealDriver {
  private token: string | undefined;
  /** Logins so far; the real one would go on without end. */
  logins = 0;

  constructor(private readonly options: DriverOptions) {}

  /** Exactly 200, or the process of the driver ends. */
  async login(): Promise<void> {
    if (++this.logins > MAX_LOGINS) throw new DriverError(401, 'logs in without end');
    const { username, password, service, backend } = this.options;
    const reply = await this.send('POST', '/containers/v1/tokens', {
      username,
      password,
      array_ip: service === undefined ? '' : backend,
    });
    if (reply.status !== 200) throw new DriverError(reply.status, reply.problem ?? 'login failed');
    this.token = decode<{ session_token: string }>(reply.value, TOKEN).session_token;
  }

  // --- what its gRPC calls do, each in the driver's order

  async createVolume(
    name: string,
    size: number,
    config: Record<string, unknown> = {},
    from: { snapshotId?: string; volumeId?: string } = {},
  ): Promise<DriverVolume> {
    const existing = await this.volumeNamed(name);
    if (existing) {
      if (existing.size !== size) throw new DriverError(409, `volume ${name} exists with size ${existing.size}`);
      const found = this.ifComplete(existing);
      // Else the answer names no content source, and the provisioner deletes the volume and begins anew.
      if (Object.keys(from).length > 0 && found.config.background_operation_status !== 'Completed')
        throw new DriverError(0, `volume ${name} is not known to be made from anything`);
      return found;
    }
    const wanted = { name, size, config: { multi_initiator: false, ...config }, volume_group_id: '' };
    if (from.snapshotId !== undefined) {
      const snapshot = await this.snapshot(from.snapshotId);
      if (!snapshot || !(await this.volume(snapshot.volume_id))) throw new DriverError(404, 'the snapshot is gone');
      return this.clone(wanted, snapshot);
    }
    if (from.volumeId !== undefined) {
      const stamp = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
      return this.clone(wanted, await this.postSnapshot(from.volumeId, `snap-for-clone-${stamp}`));
    }
    const created = decode<DriverVolume>(await this.must('POST', '/containers/v1/volumes', wanted), VOLUME);
    return this.ifComplete(created);
  }

  /** Refuses what is published or has snapshots before it asks the provider. */
  async deleteVolume(id: string, force = false): Promise<void> {
    const volume = await this.volume(id);
    if (!volume) return;
    if (volume.published) throw new DriverError(0, `volume ${id} is published`);
    if ((await this.snapshotsOf(id, true)).length > 0) throw new DriverError(0, `volume ${id} has snapshots attached`);
    await this.must('DELETE', `/containers/v1/volumes/${id}?force=${force}`);
  }

  /** The host first, then the volume's target_scope, then the publication. */
  async publish(id: string, node: DriverNode, accessProtocol = 'iscsi') {
    await this.must('POST', '/containers/v1/hosts', node);
    const volume = await this.volume(id);
    if (!volume) throw new DriverError(404, `there is no volume ${id}`);
    const path = `/containers/v1/volumes/${id}/actions/publish`;
    const reply = await this.must('PUT', path, { host_uuid: node.uuid, access_protocol: accessProtocol });
    const publication = decode<DriverPublication>(reply, PUBLICATION);
    if (publication.lun_id < 0) throw new DriverError(0, 'VLUN may not have been created');
    return { ...publication, targetScope: String(volume.config.target_scope ?? 'group') };
  }

  /** `node` is the CSI node id: a uuid with Kubernetes, the whole node as JSON without. */
  async unpublish(id: string, node: string | DriverNode): Promise<void> {
    const volume = await this.volume(id);
    if (!volume?.published) return;
    const host_uuid = typeof node === 'string' ? node : JSON.stringify(node);
    await this.must('PUT', `/containers/v1/volumes/${id}/actions/unpublish`, { host_uuid });
  }

  async expand(id: string, size: number): Promise<number> {
    const volume = await this.volume(id);
    if (!volume) throw new DriverError(404, `there is no volume ${id}`);
    if (volume.size === size) return size;
    const reply = await this.must('PUT', `/containers/v1/volumes/${id}`, { id, size, volume_group_id: '' });
    return decode<DriverVolume>(reply, VOLUME).size;
  }

  async edit(id: string, changes: { description?: string; config?: Record<string, string> }): Promise<DriverVolume> {
    const reply = await this.must('PUT', `/containers/v1/volumes/${id}`, { id, ...changes, volume_group_id: '' });
    return decode<DriverVolume>(reply, VOLUME);
  }

  async createSnapshot(volumeId: string, name: string, config?: Record<string, string>): Promise<DriverSnapshot> {
    if (!(await this.volume(volumeId))) throw new DriverError(404, `there is no volume ${volumeId}`);
    const existing = await this.snapshotNamed(volumeId, name);
    if (existing && existing.volume_id !== volumeId)
      throw new DriverError(409, `snapshot ${name} is of another volume`);
    return existing ?? this.postSnapshot(volumeId, name, config);
  }

  async deleteSnapshot(id: string): Promise<void> {
    const snapshot = await this.snapshot(id);
    if (!snapshot) return;
    if (snapshot.in_use) throw new DriverError(0, `snapshot ${id} is in use`);
    await this.must('DELETE', `/containers/v1/snapshots/${id}`);
  }

  // --- single lookups

  async volume(id: string): Promise<DriverVolume | undefined> {
    const reply = await this.call('GET', `/containers/v1/volumes/${id}`);
    if (reply.status === 200 && reply.problem === undefined) return decode<DriverVolume>(reply.value, VOLUME);
    if ([201, 204, 404].includes(reply.status)) return undefined;
    throw new DriverError(reply.status, reply.problem ?? 'unavailable');
  }

  async volumeNamed(name: string): Promise<DriverVolume | undefined> {
    const found = await this.named(`/containers/v1/volumes?name=${name}`);
    return found && decodeList<DriverVolume>(found, VOLUME)[0];
  }

  async volumes(): Promise<DriverVolume[]> {
    return decodeList<DriverVolume>(await this.must('GET', '/containers/v1/volumes'), VOLUME);
  }

  async snapshot(id: string): Promise<DriverSnapshot | undefined> {
    const reply = await this.call('GET', `/containers/v1/snapshots/${id}`);
    if (reply.status === 404) return undefined;
    if (reply.problem !== undefined) throw new DriverError(reply.status, reply.problem);
    return decode<DriverSnapshot>(reply.value, SNAPSHOT);
  }

  async snapshotNamed(volumeId: string, name: string): Promise<DriverSnapshot | undefined> {
    const found = await this.named(`/containers/v1/snapshots?name=${name}&volume_id=${volumeId}`);
    return found && decodeList<DriverSnapshot>(found, SNAPSHOT)[0];
  }

  async snapshotsOf(volumeId: string, onlyWhether = false): Promise<DriverSnapshot[]> {
    const mode = onlyWhether ? '&mode=exists' : '';
    const reply = await this.must('GET', `/containers/v1/snapshots?volume_id=${volumeId}${mode}`);
    return decodeList<DriverSnapshot>(reply, SNAPSHOT);
  }

  private async clone(wanted: object, { id }: DriverSnapshot): Promise<DriverVolume> {
    const body = { ...wanted, base_snapshot_id: id, clone: true };
    return this.ifComplete(decode<DriverVolume>(await this.must('POST', '/containers/v1/volumes', body), VOLUME));
  }

  private async postSnapshot(
    volume_id: string,
    name: string,
    config?: Record<string, string>,
  ): Promise<DriverSnapshot> {
    const reply = await this.must('POST', '/containers/v1/snapshots', { name, volume_id, description: name, config });
    return decode<DriverSnapshot>(reply, SNAPSHOT);
  }

  /** Anything but an end makes the provisioner come again. */
  private ifComplete(volume: DriverVolume): DriverVolume {
    const { background_operation_status: status = '' } = volume.config;
    if (status === '' || status === 'Completed') return volume;
    throw new DriverError(503, `volume ${volume.name} is not complete: ${status}`);
  }

  /** An empty list is as bad as an error; only 404 says that there is none. */
  private async named(path: string): Promise<unknown[] | undefined> {
    const reply = await this.call('GET', path);
    if (reply.status === 404) return undefined;
    if (reply.problem !== undefined) throw new DriverError(reply.status, reply.problem);
    if (!Array.isArray(reply.value) || reply.value.length === 0)
      throw new DriverError(reply.status, 'could not find what was looked for');
    return reply.value;
  }

  private async must(method: string, path: string, body?: object): Promise<unknown> {
    const { status, problem, value } = await this.call(method, path, body);
    if (![200, 201, 204].includes(status) || problem !== undefined)
      throw new DriverError(status, problem ?? `Request failed with status code ${status}`);
    return value;
  }

  /** Logs in when told to and goes on; what the first answer said stays in the caller's variable. */
  async call(method: string, path: string, body?: object, kept?: string): Promise<DriverReply> {
    if (this.token === undefined) await this.login();
    const reply = await this.send(method, path, body);
    if (reply.status !== 401) return { ...reply, problem: reply.problem ?? kept };
    await this.login();
    return this.call(method, path, body, reply.problem ?? kept);
  }

  private send(method: string, path: string, body?: object): Promise<DriverReply> {
    const { service, array, backend } = this.options;
    const base = service ?? array;
    if (base === undefined) throw new Error('neither service nor array is given');
    const headers: Record<string, string> = {};
    if (this.token !== undefined) headers['x-auth-token'] = this.token;
    if (service !== undefined && this.token !== undefined) headers['x-array-ip'] = backend;
    return send(base, method, path, headers, body);
  }
}
