import type { BlockBackendKind } from '#backends/block-backend';
import type { ObjectBackendKind } from '#backends/object-backend';
import type { SecretBox } from '#platform/crypto/secrets';
import type { Database, Tx } from '#platform/database/database';
import type { PageOf, PageRequest } from '#platform/database/keyset';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import { BackendKinds } from '#storage/backends/backend-kinds';
import type { BackendChanges, NewBackend, TenantRef, UnregisteredBackend } from '#storage/backends/backend-requests';
import { CHANGE, FORGET_FAULT } from '#storage/backends/backend-rows';
import { openCredentials, sealCredentials } from '#storage/backends/backend-secrets';
import { BackendTester, type BackendTestResult, type TestableBackends } from '#storage/backends/backend-tester';
import { tryOut } from '#storage/backends/backend-trial';
import {
  type BackendRow,
  type BackendView,
  backendPage,
  findBackend,
  toView,
  withShares,
} from '#storage/backends/backend-view';
import { checkedConfig, checkedCredentials } from '#storage/backends/checked-config';
import { configsOf, followShared, type SharingParts } from '#storage/backends/followed-shares';
import { forgetBackend } from '#storage/backends/forget-backend';
import { requireKept } from '#storage/backends/kept-config';
import { requirePoolNames } from '#storage/backends/pool-names';
import { asTenant, sharesOf } from '#storage/backends/shares';
import { setThinRatios } from '#storage/block/pools/thin-ratio';
import { type BackendState, shareFollows } from '#storage/shared/backend-state';
import { type Actor, audit } from '#tenancy/audit-log/audit-log';

export const APPLIANCE = 'appliance';

export interface BackendParts extends TestableBackends {
  database: Database;
  secrets: SecretBox;
  applianceId: string;
  objectKinds: readonly ObjectBackendKind[];
  blockKinds: readonly BlockBackendKind[];
}

const INSERT = sql(
  'backend_register',
  `INSERT INTO trivet.backend (tenant_id, id, name, kind, description, config, shared_from, shared_state)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (tenant_id, name) DO NOTHING RETURNING id`,
);
/** FOR UPDATE waits for whoever makes something there, and holds up who is about to. */
const LOCK = sql(
  'backend_lock',
  `SELECT id, kind, config, version, state, shared_from AS "sharedFrom", shared_state AS "sharedState"
     FROM trivet.backend WHERE tenant_id = $1 AND name = $2 FOR UPDATE`,
);
const OWNER = sql('backend_owner', 'SELECT tenant_id AS id FROM trivet.appliance_tenant()');

interface Locked {
  id: string;
  kind: string;
  config: Record<string, unknown>;
  version: number;
  state: BackendState;
  sharedFrom: string | null;
  sharedState: BackendState;
}

/**
 * The registry of backends, changed while everything runs: workers and gateways open what has another version within seconds.
 * A backend of the tenant `appliance` is there to be shared. A share is a row of the tenant that uses it; its configuration
 * and credentials follow the shared one in the same transaction, sealed for that tenant.
 */
export class BackendRegistrations {
  private readonly database: Database;
  readonly kinds: BackendKinds;
  private readonly tester: BackendTester;

  constructor(private readonly parts: BackendParts) {
    this.database = parts.database;
    this.kinds = new BackendKinds(parts.objectKinds, parts.blockKinds);
    this.tester = new BackendTester(parts);
  }

  list(tenant: TenantRef, request: PageRequest): Promise<PageOf<BackendView>> {
    return this.database.withTenant(tenant.id, async tx => {
      const page = await backendPage(tx, tenant.id, request);
      const rows: BackendView[] = [];
      for (const row of page.rows) rows.push(await this.view(tx, tenant, row));
      return { ...page, rows };
    });
  }

  get(tenant: TenantRef, name: string): Promise<BackendView> {
    return this.database.withTenant(tenant.id, tx => this.read(tx, tenant, name));
  }

  async register(actor: Actor, tenant: TenantRef, wanted: NewBackend): Promise<BackendView> {
    const registration = this.kinds.require(wanted.kind);
    const config = await checkedConfig(registration, wanted.config);
    const credentials = checkedCredentials(registration, wanted.credentials);
    return this.database.withTenant(tenant.id, async tx => {
      const { name, kind, description } = wanted;
      const id = await this.insert(tx, tenant, { name, kind, description, config, sharedFrom: null }, credentials);
      return this.registered(tx, actor, tenant, { id, name }, 'backend.create');
    });
  }

  /** Gives a tenant the use of a backend of the appliance. */
  async share(
    actor: Actor,
    tenant: TenantRef,
    wanted: { name: string; share: string; description: string },
  ): Promise<BackendView> {
    if (tenant.name === APPLIANCE)
      throw new StorageError(
        'failed_precondition',
        'a backend of the appliance is shared with other tenants than its own',
        {
          field: 'share',
        },
      );
    const owner = await this.owner();
    return this.database.withTenant(owner, async tx => {
      const [source] = await tx.query<Locked>(LOCK, [owner, wanted.share]);
      if (!source)
        throw new StorageError(
          'not_found',
          `the appliance has no backend ${wanted.share}; register it with the tenant ${APPLIANCE}`,
          {
            field: 'share',
          },
        );
      const registration = this.kinds.require(source.kind);
      const credentials = await openCredentials(tx, this.parts.secrets, owner, source.id);
      const others = await configsOf(tx, owner, await sharesOf(tx, source.id));
      const { applianceId } = this.parts;
      const config = registration.share(registration.config.parse(source.config), {
        applianceId,
        ownerId: owner,
        tenant,
        others,
      });
      return asTenant(
        tx,
        tenant.id,
        async () => {
          const { name, description } = wanted;
          const sharedState = stricter(source);
          const row = { name, kind: source.kind, description, config, sharedFrom: source.id, sharedState };
          const id = await this.insert(tx, tenant, row, credentials);
          return this.registered(tx, actor, tenant, { id, name }, 'backend.share');
        },
        owner,
      );
    });
  }

  /** Another version by now: undefined. Unknown: `not_found`. */
  async change(
    actor: Actor,
    tenant: TenantRef,
    { name, version }: { name: string; version: number },
    changes: BackendChanges,
  ): Promise<BackendView | undefined> {
    const row = await this.get(tenant, name);
    const registration = this.kinds.require(row.kind);
    const config = changes.config && (await checkedConfig(registration, changes.config));
    const credentials = changes.credentials && checkedCredentials(registration, changes.credentials);
    return this.database.withTenant(tenant.id, async tx => {
      const [locked] = await tx.query<Locked>(LOCK, [tenant.id, name]);
      if (!locked) throw unknown(name);
      if (locked.version !== version) return undefined;
      const shares = locked.sharedFrom === null ? await sharesOf(tx, locked.id) : [];
      // Locked before it is counted what they hold.
      if (config) await configsOf(tx, tenant.id, shares);
      const before = await this.read(tx, tenant, name);
      if (locked.sharedFrom !== null && (config || credentials)) throw shareFollows(name);
      if (changes.state === 'active' && locked.sharedState !== 'active')
        throw new StorageError(
          'failed_precondition',
          `the appliance has the backend that ${name} is a share of ${locked.sharedState}: take that one back first`,
          { field: 'state' },
        );
      if (config) {
        const places = [{ tenantId: tenant.id, backendId: locked.id }, ...shares] as const;
        await requireKept(tx, this.kinds, { ...locked, holds: before.holds }, config, places);
        await this.requireNames(tx, tenant, locked.id, locked.kind, config, locked.config);
      }
      const { description = null, state = null } = changes;
      const stored = config === undefined ? null : JSON.stringify(config);
      await tx.query(CHANGE, [tenant.id, locked.id, description, state, stored, null]);
      if (credentials) await sealCredentials(tx, this.parts.secrets, tenant.id, locked.id, credentials);
      if (config || credentials) await tx.query(FORGET_FAULT, [tenant.id, locked.id]);
      if (changes.thinRatios) await setThinRatios(tx, tenant.id, locked, changes.thinRatios);
      const after = { ...locked, config: (config ?? locked.config) as Locked['config'], state: state ?? locked.state };
      if (config || credentials || state)
        await followShared(tx, this.sharing, actor, tenant.id, after, credentials, shares);
      const view = await this.read(tx, tenant, name);
      await audit(tx, actor, {
        tenantId: tenant.id,
        tenantName: tenant.name,
        action: changes.state === undefined ? 'backend.change' : `backend.${VERBS[changes.state]}`,
        subject: { kind: 'backend', id: locked.id, name },
        before: shownInAudit(before),
        after: { ...shownInAudit(view), ...(credentials ? { credentials } : {}) },
        reason: changes.reason,
      });
      return view;
    });
  }

  /** Holds something, has an endpoint, is shared: `failed_precondition`. Another version by now: false. */
  delete(actor: Actor, tenant: TenantRef, { name, version }: { name: string; version: number }): Promise<boolean> {
    return forgetBackend(this.database, actor, tenant, { name, version });
  }

  test(tenant: TenantRef, name: string): Promise<BackendTestResult> {
    return this.tester.test(tenant.id, name);
  }

  /**
   * Tests one that is not registered, refused as `register` would refuse it; nothing of it is stored but that somebody
   * asked, which the audit log has before the store is asked.
   */
  async tryOut(actor: Actor, tenant: TenantRef, wanted: UnregisteredBackend): Promise<BackendTestResult> {
    const { name, kind } = wanted;
    const registration = this.kinds.require(kind);
    const config = await checkedConfig(registration, wanted.config);
    const credentials = checkedCredentials(registration, wanted.credentials);
    await this.database.withTenant(tenant.id, async tx => {
      await this.requireNames(tx, tenant, uuidv7(), kind, config);
      if (name !== undefined && (await findBackend(tx, tenant.id, name))) throw taken(tenant, name);
      await audit(tx, actor, {
        tenantId: tenant.id,
        tenantName: tenant.name,
        action: 'backend.try',
        subject: { kind: 'backend', ...(name === undefined ? {} : { name }) },
        after: { kind, config },
      });
    });
    const { applianceId } = this.parts;
    const open = () => this.kinds.open(kind, config, credentials, { applianceId, tenantId: tenant.id });
    return tryOut(open, this.kinds.poolsOf(kind, config));
  }

  private async view(tx: Tx, tenant: TenantRef, row: BackendRow): Promise<BackendView> {
    const whole = tenant.name === APPLIANCE ? await withShares(tx, tenant.id, row) : row;
    return toView(whole, each => this.kinds.capabilitiesOf(each));
  }

  private async read(tx: Tx, tenant: TenantRef, name: string): Promise<BackendView> {
    const row = await findBackend(tx, tenant.id, name);
    if (!row) throw unknown(name);
    return this.view(tx, tenant, row);
  }

  private async insert(
    tx: Tx,
    tenant: TenantRef,
    row: Omit<NewBackend, 'credentials' | 'config'> & {
      config: unknown;
      sharedFrom: string | null;
      sharedState?: BackendState;
    },
    credentials: Record<string, string>,
  ): Promise<string> {
    const id = uuidv7();
    const { name, kind, description, config, sharedFrom, sharedState = 'active' } = row;
    await this.requireNames(tx, tenant, id, kind, config);
    const values = [tenant.id, id, name, kind, description, JSON.stringify(config), sharedFrom, sharedState];
    if ((await tx.query(INSERT, values)).length === 0) throw taken(tenant, name);
    await sealCredentials(tx, this.parts.secrets, tenant.id, id, credentials);
    return id;
  }

  private async registered(
    tx: Tx,
    actor: Actor,
    tenant: TenantRef,
    { id, name }: { id: string; name: string },
    action: string,
  ): Promise<BackendView> {
    const view = await this.read(tx, tenant, name);
    await audit(tx, actor, {
      tenantId: tenant.id,
      tenantName: tenant.name,
      action,
      subject: { kind: 'backend', id, name },
      after: shownInAudit(view),
    });
    return view;
  }

  /** Nobody but those it is shared with has volumes at a backend of the appliance. */
  private async requireNames(
    tx: Tx,
    tenant: Pick<TenantRef, 'id' | 'name'>,
    backendId: string,
    kind: string,
    config: unknown,
    had?: unknown,
  ): Promise<void> {
    if (tenant.name === APPLIANCE) return;
    const before = had === undefined ? [] : this.kinds.poolsOf(kind, had);
    await requirePoolNames(tx, tenant, backendId, this.kinds.poolsOf(kind, config), before);
  }

  private get sharing(): SharingParts {
    const { secrets, applianceId } = this.parts;
    return { kinds: this.kinds, secrets, applianceId };
  }

  private async owner(): Promise<string> {
    const [row] = await this.database.call<{ id: string }>(OWNER, []);
    return row!.id;
  }
}

const VERBS = { active: 'resume', cordoned: 'cordon', draining: 'drain' } as const;

/** Of both states of what is itself a share. */
function stricter({ state, sharedState }: Locked): BackendState {
  const both = [state, sharedState];
  if (both.includes('draining')) return 'draining';
  return both.includes('cordoned') ? 'cordoned' : 'active';
}

/** What changes by itself is no part of a change. */
function shownInAudit({ name, kind, description, state, shared, config, pools }: BackendView) {
  const ratios = pools?.map(pool => [pool.name, pool.thinRatio]) ?? [];
  const thinRatios = ratios.length > 0 ? { thinRatios: Object.fromEntries(ratios) } : {};
  return { name, kind, description, state, shared, config, ...thinRatios };
}

const taken = (tenant: TenantRef, name: string): StorageError =>
  new StorageError('already_exists', `tenant ${tenant.name} has a backend ${name} already`, { field: 'name' });

export const unknown = (name: string): StorageError =>
  new StorageError('not_found', `there is no backend ${name}`, { resource: `backend ${name}` });
