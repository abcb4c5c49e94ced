import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { RouteContract } from '#admin/contract/route';
import { decodeSealed } from '#platform/crypto/secrets';
import { uuidv7 } from '#platform/uuid';
import type { BlockCaller } from '#storage/block/block-storage';
import type { EndpointCaller } from '#storage/object/endpoint';
import { AdminHouse } from '#test/admin/admin-house';
import { grantOn } from '#test/admin/resource-calls';
import { hostRequest, volumeRequest } from '#test/block-storage/block-house';
import { callerAt } from '#test/support/endpoint-caller';
import { until } from '#test/support/parts';
import { codeNow } from '#test/support/totp';

/** What placeholders of examples stand for: objects of the tenant acme, made by its doors for this one call. */
export class ExampleThings {
  private made = 0;
  private readonly endpointId = uuidv7();

  private constructor(readonly house: AdminHouse) {}

  /** In a house of its own, with a worker. */
  static async create(env: Record<string, string> = {}): Promise<ExampleThings> {
    const house = await AdminHouse.create({ block: 'fake', env });
    try {
      return await new ExampleThings(house).open();
    } catch (error) {
      await house.close();
      throw error;
    }
  }

  private async open(): Promise<this> {
    const { house } = this;
    // Each tenant has a pool of its own.
    for (const { id, name } of [house.acme, house.beta]) {
      const path = join(house.appliance.poolPath, name);
      mkdirSync(path);
      await house.query(
        `UPDATE trivet.backend SET config = jsonb_set(config, '{pools,0,path}', to_jsonb($2::text))
          WHERE tenant_id = $1 AND name = 'local'`,
        [id, path],
      );
    }
    await house.query(
      "INSERT INTO trivet.endpoint (tenant_id, id, name, protocol, backend_id) VALUES ($1, $2, 'buckets', 'cosi', $3)",
      [house.acme.id, this.endpointId, house.acme.backends.fake],
    );
    await house.appliance.worker();
    await until('the pool was looked at', async () => {
      const up = "SELECT FROM trivet.pool WHERE tenant_id = $1 AND state = 'up'";
      return (await house.query(up, [house.acme.id])).length > 0;
    });
    return this;
  }

  /** `{name}` in an example of that route. */
  async make(name: string, route: Pick<RouteContract, 'id' | 'method'>): Promise<string> {
    switch (name) {
      case 'tenant':
        // Limits of the one that all others are made in would be met by them.
        return route.id === 'setQuotas' ? this.emptyTenant() : 'acme';
      case 'username':
        return this.house.root.admin.username;
      case 'password':
        return this.house.root.admin.password;
      case 'emptyTenant':
        return this.emptyTenant();
      case 'user':
        return this.user();
      case 'token':
        return this.token();
      case 'code':
        return this.code();
      case 'passkey':
        return this.passkey();
      case 'login':
        return this.login();
      case 'backend':
        return route.method === 'DELETE' || route.method === 'PATCH' ? this.emptyBackend() : 'fake';
      case 'objectBackend':
        return 'fake';
      case 'sharedBackend':
        return this.sharedBackend();
      case 'endpoint':
        return this.endpoint();
      case 'cluster':
        return this.cluster();
      case 'bucket':
        return this.bucket();
      case 'foreignBucket':
        return this.foreignBucket();
      case 'access':
        return route.id === 'readAccessKey' ? this.issued() : this.access();
      case 'volume':
        return this.volume();
      case 'binnedVolume':
        return this.binnedVolume();
      case 'snapshot':
        return this.snapshot();
      case 'host':
        return this.host();
      case 'publication':
        return this.publication();
      case 'storageHost':
        return this.storageHost();
      case 'alert':
        return this.alert();
      case 'receiver':
        return this.receiver();
      case 'silence':
        return this.silence();
      case 'view':
        return this.view();
      case 'poolBackend':
        return this.poolBackend();
      case 'movedPool':
        return 'moved';
      case 'policy':
        return this.policy();
      case 'template':
        return this.template();
      case 'session':
        return this.session();
      case 'operation':
        return this.operation(route);
      default:
        throw new Error(`${route.id}: nobody makes {${name}}`);
    }
  }

  private fresh(what: string): string {
    return `${what}-${++this.made}`;
  }

  private get blocks(): BlockCaller {
    const { id: tenantId, backends } = this.house.acme;
    return { tenantId, backendId: backends.local!, backendKind: 'fake-block', deadline: Date.now() + 20_000 };
  }

  private get door(): EndpointCaller {
    const { id: tenantId, backends } = this.house.acme;
    return callerAt({
      id: this.endpointId,
      tenantId,
      backendId: backends.fake!,
      backendKind: 'fake',
      protocols: ['s3'],
      accessPoint: { endpoint: 'http://fake.invalid', region: 'default', addressing: 'path' },
      driverName: 'test',
      name: 'test',
      grantMismatch: 'already_exists',
      accessModeNumbers: 'auto',
    });
  }

  private async only(text: string, ...params: unknown[]): Promise<string> {
    const [row] = await this.house.query<{ value: string }>(text, [this.house.acme.id, ...params]);
    return row!.value;
  }

  private async emptyTenant(): Promise<string> {
    const name = this.fresh('empty');
    await this.house.query('INSERT INTO trivet.tenant (id, name) VALUES ($1, $2)', [uuidv7(), name]);
    return name;
  }

  /** Of who calls examples. */
  private async view(): Promise<string> {
    const id = uuidv7();
    const { admin } = this.house.root;
    await this.house.query(
      `INSERT INTO trivet.saved_view (tenant_id, user_id, id, list, name, query)
       VALUES ($1, $2, $3, 'volumes', $4, '{}')`,
      [admin.tenantId, admin.userId, id, this.fresh('view')],
    );
    return id;
  }

  private async cluster(): Promise<string> {
    const name = this.fresh('cluster');
    await this.house.query(
      `INSERT INTO trivet.cluster (tenant_id, id, name, release, certificate_serial, certificate_until)
       VALUES ($1, $2, $3, '0', '01', now() + interval '1 day')`,
      [this.house.acme.id, uuidv7(), name],
    );
    return name;
  }

  private async user(): Promise<string> {
    const name = this.fresh('user');
    await this.house.query(
      "INSERT INTO trivet.tenant_user (tenant_id, id, name, password, role) VALUES ($1, $2, $3, 'none', 'operator')",
      [this.house.acme.id, uuidv7(), name],
    );
    return name;
  }

  private async token(): Promise<string> {
    const id = uuidv7();
    await this.house.query(
      `INSERT INTO trivet.admin_token (tenant_id, id, user_id, kind, name, role, token_hash)
       VALUES ($1, $2, $3, 'token', $4, 'viewer', $5)`,
      [
        this.house.acme.id,
        id,
        this.house.acme.operator.userId,
        this.fresh('token'),
        createHash('sha256').update(randomBytes(32)).digest(),
      ],
    );
    return id;
  }

  /** Of the administrator who makes the calls. */
  private async passkey(): Promise<string> {
    const { id: tenant, admin } = this.house.root;
    const id = uuidv7();
    await this.house.query(
      `INSERT INTO trivet.passkey (tenant_id, id, user_id, name, credential_id, public_key, counter)
       VALUES ($1, $2, $3, $4, $5, 'x', 0)`,
      [tenant, id, admin.userId, this.fresh('passkey'), randomBytes(32)],
    );
    return id;
  }

  /** Of the administrator who makes the calls, as its app would show it; what was used before is forgotten. */
  private async code(): Promise<string> {
    const { id: tenantId, admin } = this.house.root;
    const [row] = await this.house.query<{ sealed: Buffer }>(
      "SELECT sealed FROM trivet.secret WHERE tenant_id = $1 AND owner_table = 'user_totp' AND owner_id = $2",
      [tenantId, admin.userId],
    );
    if (!row) return '000000';
    await this.house.query('UPDATE trivet.user_totp SET used_step = 0');
    const place = { tenantId, table: 'user_totp', rowId: admin.userId, column: 'secret' };
    return codeNow(this.house.appliance.secrets.openText(decodeSealed(row.sealed), place));
  }

  /** Of the administrator who makes the calls. */
  private async login(): Promise<string> {
    const { id: tenant, admin } = this.house.root;
    const id = uuidv7();
    await this.house.query(
      `INSERT INTO trivet.admin_token (tenant_id, id, user_id, kind, name, role, token_hash, expires_at)
       VALUES ($1, $2, $3, 'session', '', 'admin', $4, now() + interval '1 h')`,
      [tenant, id, admin.userId, createHash('sha256').update(randomBytes(32)).digest()],
    );
    return id;
  }

  private async emptyBackend(tenantId = this.house.acme.id): Promise<string> {
    const name = this.fresh('backend');
    const config = { file: join(this.house.appliance.folder, 'fake.db') };
    await this.house.query(
      "INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, $3, 'fake', $4)",
      [tenantId, uuidv7(), name, config],
    );
    return name;
  }

  private sharedBackend(): Promise<string> {
    return this.emptyBackend(this.house.root.id);
  }

  private async endpoint(): Promise<string> {
    const name = this.fresh('endpoint');
    await this.house.query(
      "INSERT INTO trivet.endpoint (tenant_id, id, name, protocol, backend_id) VALUES ($1, $2, $3, 'cosi', $4)",
      [this.house.acme.id, uuidv7(), name, this.house.acme.backends.fake],
    );
    return name;
  }

  private async bucketNamed(): Promise<string> {
    const name = this.fresh('bucket');
    await this.house.parts.storage.buckets.create(this.door, { name, protocols: [], parameters: {} });
    return name;
  }

  private async bucket(): Promise<string> {
    return this.only(
      'SELECT id AS value FROM trivet.bucket WHERE tenant_id = $1 AND name = $2',
      await this.bucketNamed(),
    );
  }

  private async account(): Promise<string> {
    const { storage } = this.house.parts;
    const {
      value: { accountId },
    } = await grantOn(storage, this.door, this.fresh('access'), await this.bucketNamed());
    return accountId;
  }

  private async access(): Promise<string> {
    return this.only(
      'SELECT id AS value FROM trivet.access WHERE tenant_id = $1 AND account_id = $2',
      await this.account(),
    );
  }

  /** By a person, whose key is shown. */
  private async issued(): Promise<string> {
    const name = this.fresh('issued');
    const body = { name, buckets: [{ bucket: await this.bucket(), mode: 'read_only' }] };
    return (await this.house.call(this.house.acme.admin, 'POST', '/tenants/acme/accesses', { body })).body.id;
  }

  private async volume(destroyOnDelete = true): Promise<string> {
    const request = { ...volumeRequest(this.fresh('volume')), sizeBytes: 1n << 20n, destroyOnDelete };
    return (await this.house.parts.blockStorage.volumes.create(this.blocks, request)).value.id;
  }

  private async binnedVolume(): Promise<string> {
    const id = await this.volume(false);
    await this.house.parts.blockStorage.volumes.delete(this.blocks, id, { force: false });
    return id;
  }

  private async snapshot(): Promise<string> {
    const request = { volumeId: await this.volume(), name: this.fresh('snapshot'), description: '', config: {} };
    return (await this.house.parts.blockStorage.snapshots.create(this.blocks, request)).value.id;
  }

  private async host(): Promise<string> {
    const request = hostRequest(this.fresh('host'));
    await this.house.parts.blockStorage.hosts.put(this.blocks, request);
    return this.only('SELECT id AS value FROM trivet.host WHERE tenant_id = $1 AND uuid = $2', request.uuid);
  }

  private async publication(): Promise<string> {
    const [volume, host] = [await this.volume(), await this.host()];
    await this.house.parts.blockStorage.publications.publish(this.blocks, volume, { host, accessProtocol: 'iscsi' });
    return this.only('SELECT id AS value FROM trivet.publication WHERE tenant_id = $1 AND volume_id = $2', volume);
  }

  private async template(): Promise<string> {
    const name = this.fresh('template');
    await this.house.query(
      `INSERT INTO trivet.protection_template (tenant_id, id, name, schedules)
       SELECT tenant_id, $2, $3, schedules FROM trivet.protection_template WHERE tenant_id = $1 LIMIT 1`,
      [this.house.acme.id, randomUUID(), name],
    );
    return name;
  }

  /** That lives, and can reach so much. */
  private async storageHost(name = 'node-b', reach: object = {}): Promise<string> {
    await this.house.query(
      `INSERT INTO trivet.storage_host (name, named, machine, release, reach) VALUES ($1, true, $1, '0', $2)
       ON CONFLICT (name) DO UPDATE SET seen_at = now(), reach = storage_host.reach || excluded.reach`,
      [name, JSON.stringify(reach)],
    );
    return name;
  }

  private async alert(): Promise<string> {
    const id = uuidv7();
    await this.house.query(
      `INSERT INTO trivet.alert (tenant_id, id, rule, object, severity, state, what, means, todo, opened_at)
       VALUES ($1, $2, 'pool_down', $3, 'error', 'open', 'what', 'means', 'todo', now())`,
      [this.house.root.id, id, this.fresh('pool')],
    );
    return id;
  }

  /** Where nobody answers. */
  private async receiver(): Promise<string> {
    const name = this.fresh('receiver');
    const target = {
      kind: 'smtp',
      host: '192.0.2.1.invalid',
      port: 25,
      from: 'a@trivet.invalid',
      to: ['b@trivet.invalid'],
    };
    const reply = await this.house.call(this.house.root.admin, 'POST', '/receivers', { body: { name, target } });
    if (reply.status !== 201) throw new Error(JSON.stringify(reply.body));
    return name;
  }

  private async silence(): Promise<string> {
    const id = uuidv7();
    await this.house.query(
      `INSERT INTO trivet.alert_silence (tenant_id, id, until, reason, made_by)
       VALUES ($1, $2, now() + interval '1 hour', 'why', 'ann')`,
      [this.house.root.id, id],
    );
    return id;
  }

  /** Its pool `moved` is at a host that is without it, and node-b has its disk. */
  private async poolBackend(): Promise<string> {
    const name = this.fresh('pools');
    const id = uuidv7();
    const path = join(this.house.appliance.folder, name);
    const config = { file: join(this.house.appliance.folder, 'fake-block.db'), pools: [{ name: 'moved', path }] };
    await this.house.query(
      "INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, $3, 'fake-block', $4)",
      [this.house.acme.id, id, name, config],
    );
    const pool = { backend: id, name: 'moved', path };
    await this.storageHost('node-a', { absent: [pool] });
    await this.storageHost('node-b', { foreign: [{ ...pool, home: 'node-a' }] });
    await this.house.query(
      "INSERT INTO trivet.pool_home (tenant_id, backend_id, pool, host) VALUES ($1, $2, 'moved', 'node-a')",
      [this.house.acme.id, id],
    );
    return name;
  }

  private foreignBucket(): string {
    const name = this.fresh('foreign');
    this.house.appliance.fake!.seedForeignBucket(name);
    return name;
  }

  private async policy(): Promise<string> {
    const name = this.fresh('policy');
    await this.house.query(
      "INSERT INTO trivet.performance_policy (tenant_id, name, description, config) VALUES ($1, $2, '', '{}')",
      [this.house.acme.id, name],
    );
    return name;
  }

  private async session(): Promise<string> {
    const owner = { tenantId: this.house.acme.id, userId: this.house.acme.operator.userId };
    return (await this.house.parts.snapshotSessions.create(owner, { snapshots: [await this.snapshot()] })).id;
  }

  /** In a state in which the route may act upon it. */
  private async operation({ id }: Pick<RouteContract, 'id'>): Promise<string> {
    const fake = this.house.appliance.fake!;
    const waits = async (name: string, ...states: string[]): Promise<string> => {
      const find =
        'SELECT id, state, attempt FROM trivet.operation WHERE tenant_id = $1 AND resource_name = $2 ORDER BY seq DESC';
      const row = await until(`the operation of ${name} is ${states}`, async () => {
        const [found] = await this.house.query<{ id: string; state: string; attempt: number }>(find, [
          this.house.acme.id,
          name,
        ]);
        return found && found.attempt > 0 && states.includes(found.state) ? found : undefined;
      });
      return row.id;
    };
    const begin = (name: string): void => {
      const left = { ...this.door, deadline: Date.now() };
      this.house.parts.storage.buckets.create(left, { name, protocols: [], parameters: {} }).catch(() => {});
    };
    const name = this.fresh('bucket');
    switch (id) {
      case 'retryOperation':
      case 'cancelOperation':
        // A kind that does not shut the backend for the others.
        fake.addFault({ resource: name, mode: 'fail-before', error: 'aborted', count: 1_000 });
        begin(name);
        return waits(name, 'pending');
      case 'releaseOperation':
        fake.addFault({ resource: name, mode: 'hang', count: 1_000 });
        begin(name);
        return waits(name, 'running');
      case 'resolveOperation': {
        const account = await this.account();
        fake.addFault({ resource: account, mode: 'fail-before', error: 'unimplemented', count: 1_000 });
        this.house.parts.storage.accesses.revoke({ ...this.door, deadline: Date.now() }, account).catch(() => {});
        return this.only(
          'SELECT id AS value FROM trivet.operation WHERE tenant_id = $1 AND id = $2',
          await until('the revocation waits for a person', async () => {
            const [found] = await this.house.query<{ id: string }>(
              "SELECT id FROM trivet.operation WHERE tenant_id = $1 AND state = 'needs_attention'",
              [this.house.acme.id],
            );
            return found?.id;
          }),
        );
      }
      default:
        await this.bucketNamed();
        return this.only('SELECT id AS value FROM trivet.operation WHERE tenant_id = $1 ORDER BY seq DESC LIMIT 1');
    }
  }
}
