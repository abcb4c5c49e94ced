import { type ChangeObserver, noting } from '#operations/accepting/change-observer';
import { type Database, isUniqueViolation, type Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { invalid, StorageError } from '#platform/errors';
import type { VolumeConfig } from '#storage/block/block-storage';

export interface PolicyView {
  name: string;
  description: string;
  config: VolumeConfig;
  shipped: boolean;
}

/** What a policy may say for volumes whose creator says nothing, and how such a value looks. */
const KEYS = {
  thick: ['true', 'false'],
  destroy_on_delete: ['true', 'false'],
  limit_iops: /^(-1|[1-9]\d{0,9})$/,
  limit_mbps: /^(-1|[1-9]\d{0,9})$/,
  pool: /^.{1,63}$/,
  folder: /^.{0,255}$/,
} as const satisfies Record<string, RegExp | readonly string[]>;

const LIST = sql(
  'policy_list',
  'SELECT name, description, config, shipped FROM trivet.performance_policy WHERE tenant_id = $1 ORDER BY name',
);
const ADD = sql(
  'policy_add',
  'INSERT INTO trivet.performance_policy (tenant_id, name, description, config) VALUES ($1, $2, $3, $4)',
);
const REMOVE = sql(
  'policy_remove',
  'DELETE FROM trivet.performance_policy WHERE tenant_id = $1 AND name = $2 AND NOT shipped RETURNING name',
);
const READ = sql(
  'policy_read',
  'SELECT name, description, config, shipped FROM trivet.performance_policy WHERE tenant_id = $1 AND name = $2',
);
const LOCK = sql(
  'policy_lock',
  'SELECT description, config, shipped FROM trivet.performance_policy WHERE tenant_id = $1 AND name = $2 FOR UPDATE',
);
const EDIT = sql(
  'policy_edit',
  'UPDATE trivet.performance_policy SET description = $3, config = $4 WHERE tenant_id = $1 AND name = $2',
);
const FIND = sql('policy_find', 'SELECT shipped FROM trivet.performance_policy WHERE tenant_id = $1 AND name = $2');

/** Profiles that volumes are made by; the shipped ones carry the names that drivers ask for, and stay. */
export class PerformancePolicies {
  constructor(
    private readonly database: Database,
    private readonly tenantId: string,
  ) {}

  list(): Promise<PolicyView[]> {
    return this.database.withTenant(this.tenantId, tx => tx.query<PolicyView>(LIST, [this.tenantId]));
  }

  async find(tx: Tx, name: string): Promise<PolicyView | undefined> {
    const [row] = await tx.query<PolicyView>(READ, [this.tenantId, name]);
    return row;
  }

  /** For volumes that are made from now on; others stay as they are, as does what is not given. Shipped: `failed_precondition`. */
  async edit(
    name: string,
    changes: { description?: string | undefined; config?: Readonly<Record<string, string>> | undefined },
    observer?: ChangeObserver,
  ): Promise<void> {
    for (const [key, value] of Object.entries(changes.config ?? {})) requireSetting(key, value);
    const resource = `performance policy ${name}`;
    await this.database.withTenant(this.tenantId, async tx => {
      const [policy] = await tx.query<Omit<PolicyView, 'name'>>(LOCK, [this.tenantId, name]);
      await observer?.before?.(tx);
      if (!policy) throw new StorageError('not_found', `there is no ${resource}`, { resource });
      if (policy.shipped)
        throw new StorageError('failed_precondition', `${resource} is shipped and stays: make one of your own`, {
          resource,
        });
      const { description = policy.description, config = policy.config } = changes;
      await tx.query(EDIT, [this.tenantId, name, description, JSON.stringify(config)]);
      await tx.commit(...this.noting(observer, 'change', name));
    });
  }

  async add(
    name: string,
    description: string,
    config: Readonly<Record<string, string>>,
    observer?: ChangeObserver,
  ): Promise<void> {
    if (!/^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/.test(name))
      throw invalid('name', 'expected 1 to 64 letters, digits, blanks, dots, dashes and underscores');
    for (const [key, value] of Object.entries(config)) requireSetting(key, value);
    const values = [this.tenantId, name, description, JSON.stringify(config)];
    try {
      await this.database.withTenant(this.tenantId, async tx => {
        await tx.query(ADD, values);
        await tx.commit(...this.noting(observer, 'create', name));
      });
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      throw new StorageError('already_exists', `there is a performance policy ${name} already`, { cause: error });
    }
  }

  /** Volumes made with it stay as they are. Shipped: `failed_precondition`. */
  async remove(name: string, observer?: ChangeObserver): Promise<void> {
    const key = [this.tenantId, name];
    const resource = `performance policy ${name}`;
    await this.database.withTenant(this.tenantId, async tx => {
      if ((await tx.query(REMOVE, key)).length > 0) return tx.commit(...this.noting(observer, 'delete', name));
      if ((await tx.query(FIND, key)).length === 0)
        throw new StorageError('not_found', `there is no ${resource}`, { resource });
      throw new StorageError('failed_precondition', `${resource} is shipped and stays`, { resource });
    });
  }

  /** It has no id: its name is its key. */
  private noting(observer: ChangeObserver | undefined, verb: 'create' | 'change' | 'delete', name: string) {
    return noting(observer, { kind: `performance-policy.${verb}`, resourceId: name, resourceName: name });
  }
}

function requireSetting(key: string, value: string): void {
  const rule: RegExp | readonly string[] | undefined = Object.hasOwn(KEYS, key)
    ? KEYS[key as keyof typeof KEYS]
    : undefined;
  if (!rule) throw invalid(key, `a policy cannot set it; it may set ${Object.keys(KEYS).join(', ')}`);
  const fits = rule instanceof RegExp ? rule.test(value) : rule.includes(value);
  if (!fits) throw invalid(key, `"${value}" is no value for it`);
}
