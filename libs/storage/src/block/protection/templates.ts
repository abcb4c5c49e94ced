import { type ChangeObserver, noting } from '#operations/accepting/change-observer';
import { counted } from '#platform/counted';
import { type Database, isUniqueViolation, type Tx } from '#platform/database/database';
import { ListQuery, type PageOf, type PageRequest, readPage } from '#platform/database/keyset';
import { sql } from '#platform/database/sql';
import { invalid, StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import { nextPeriod, type Schedule } from '#storage/block/protection/periods';

const SHORTEST_MINUTES = 5;
const WEEK_MINUTES = 7 * 24 * 60;
const MOST_RETAINED = 10_000;
const MOST_SCHEDULES = 10;

export interface TemplateView {
  id: string;
  name: string;
  schedules: Schedule[];
  shipped: boolean;
  /** Volumes that have it. */
  volumes: number;
  createdAt: Date;
}

const SELECT = `SELECT t.id, t.name, t.schedules, t.shipped, t.created_at AS "createdAt",
          (SELECT count(DISTINCT p.volume_id)::integer
             FROM trivet.volume_protection p
             JOIN trivet.volume v ON v.tenant_id = p.tenant_id AND v.id = p.volume_id AND v.state <> 'gone'
            WHERE p.tenant_id = t.tenant_id AND p.template_id = t.id) AS volumes
     FROM trivet.protection_template t`;
const LIST = sql('protection_list', `${SELECT} WHERE t.tenant_id = $1 ORDER BY t.name`);
/** Unique within a tenant. */
const BY_NAME = { columns: [{ sql: 't.name', type: 'text' }] } as const;
const ADD = sql(
  'protection_add',
  'INSERT INTO trivet.protection_template (tenant_id, id, name, schedules) VALUES ($1, $2, $3, $4)',
);
const LOCK = sql(
  'protection_lock',
  `SELECT id, shipped, schedules, now() AS now FROM trivet.protection_template
    WHERE tenant_id = $1 AND name = $2 FOR UPDATE`,
);
const LET_GO = sql(
  'protection_let_go',
  `DELETE FROM trivet.volume_protection p USING trivet.volume v
    WHERE p.tenant_id = $1 AND p.template_id = $2 AND v.tenant_id = $1 AND v.id = p.volume_id AND v.state = 'gone'`,
);
const USED = sql(
  'protection_used',
  `SELECT count(DISTINCT volume_id)::integer AS volumes,
          (SELECT count(*)::integer FROM trivet.volume_group WHERE tenant_id = $1 AND protection_template = $3) AS groups
     FROM trivet.volume_protection
    WHERE tenant_id = $1 AND template_id = $2`,
);
const REMOVE = sql('protection_remove', 'DELETE FROM trivet.protection_template WHERE tenant_id = $1 AND id = $2');

/** Before the template: who protects a volume holds its row first. */
const LOCK_VOLUMES = sql(
  'protection_lock_volumes',
  `SELECT v.id FROM trivet.volume v
    WHERE v.tenant_id = $1 AND v.id IN (SELECT p.volume_id FROM trivet.volume_protection p
                                         WHERE p.tenant_id = $1 AND p.template_id = $2)
    ORDER BY v.id FOR UPDATE`,
);
const PROTECTED = sql(
  'protection_protected',
  `SELECT volume_id AS "volumeId", bool_and(by_group) AS "byGroup" FROM trivet.volume_protection
    WHERE tenant_id = $1 AND template_id = $2 GROUP BY volume_id`,
);
const EDIT = sql(
  'protection_edit',
  'UPDATE trivet.protection_template SET schedules = $3 WHERE tenant_id = $1 AND id = $2',
);
/** Of each volume and schedule: where the period is another one it begins with the next, and what is too many is soon pruned. */
const RESCHEDULE = sql(
  'protection_reschedule',
  `INSERT INTO trivet.volume_protection AS p (tenant_id, volume_id, schedule, template_id, next_run_at, by_group)
   SELECT $1, v.volume_id, s.schedule, $2, s.next_run_at, v.by_group
     FROM unnest($3::uuid[], $4::boolean[]) AS v (volume_id, by_group)
    CROSS JOIN unnest($5::text[], $6::timestamptz[]) AS s (schedule, next_run_at)
   ON CONFLICT (tenant_id, volume_id, schedule) DO UPDATE
      SET next_run_at = CASE WHEN p.schedule = ANY ($7) THEN excluded.next_run_at ELSE p.next_run_at END,
          prune_at = now()`,
);
const DROP_SCHEDULES = sql(
  'protection_drop_schedules',
  'DELETE FROM trivet.volume_protection WHERE tenant_id = $1 AND template_id = $2 AND schedule <> ALL ($3)',
);

/** What an administrator keeps for a tenant; the shipped ones are there from its first moment, and stay. */
export class ProtectionTemplates {
  constructor(
    private readonly database: Database,
    private readonly tenantId: string,
  ) {}

  list(): Promise<TemplateView[]> {
    return this.database.withTenant(this.tenantId, tx => tx.query<TemplateView>(LIST, [this.tenantId]));
  }

  page(request: PageRequest): Promise<PageOf<TemplateView>> {
    const query = new ListQuery().where('t.tenant_id = ?', this.tenantId);
    return this.database.withTenant(this.tenantId, tx => readPage(tx, query, SELECT, BY_NAME, request));
  }

  async find(tx: Tx, name: string): Promise<TemplateView | undefined> {
    const query = new ListQuery().where('t.tenant_id = ?', this.tenantId).where('t.name = ?', name);
    const { rows } = await readPage<TemplateView>(tx, query, SELECT, BY_NAME, { limit: 1 });
    return rows[0];
  }

  async add(name: string, schedules: readonly Schedule[], observer?: ChangeObserver): Promise<void> {
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name))
      throw invalid('name', 'expected 1 to 64 letters, digits, dots, dashes and underscores');
    const id = uuidv7();
    const values = [this.tenantId, id, name, JSON.stringify(requireSchedules(schedules))];
    try {
      await this.database.withTenant(this.tenantId, async tx => {
        await tx.query(ADD, values);
        await tx.commit(
          ...noting(observer, { kind: 'protection-template.create', resourceId: id, resourceName: name }),
        );
      });
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      throw new StorageError('already_exists', `there is a protection template ${name} already`, { cause: error });
    }
  }

  /**
   * Its volumes go by the new schedules at once: a new one begins with its next period, as does one whose period is another; of one that
   * keeps fewer the oldest are deleted soon. What a schedule made that is gone stays until somebody deletes it.
   * Shipped: `failed_precondition`.
   */
  async edit(name: string, wanted: readonly Schedule[], observer?: ChangeObserver): Promise<void> {
    const { tenantId } = this;
    const resource = `protection template ${name}`;
    const schedules = requireSchedules(wanted);
    await this.database.withTenant(tenantId, async tx => {
      const seen = await this.find(tx, name);
      const locked = seen ? await tx.query<{ id: string }>(LOCK_VOLUMES, [tenantId, seen.id]) : [];
      const [template] = await tx.query<Locked>(LOCK, [tenantId, name]);
      await observer?.before?.(tx);
      if (!template) throw new StorageError('not_found', `there is no ${resource}`, { resource });
      if (template.shipped)
        throw new StorageError('failed_precondition', `${resource} is shipped and stays: make one of your own`, {
          resource,
        });
      const volumes = await tx.query<{ volumeId: string; byGroup: boolean }>(PROTECTED, [tenantId, template.id]);
      const isLocked = new Set(locked.map(({ id }) => id));
      if (volumes.some(({ volumeId }) => !isLocked.has(volumeId)))
        throw new StorageError('aborted', `${resource} was given to a volume meanwhile; try again`, { resource });
      await tx.query(EDIT, [tenantId, template.id, JSON.stringify(schedules)]);
      const names = schedules.map(schedule => schedule.name);
      await tx.query(RESCHEDULE, [
        tenantId,
        template.id,
        volumes.map(({ volumeId }) => volumeId),
        volumes.map(({ byGroup }) => byGroup),
        names,
        schedules.map(schedule => nextPeriod(schedule, template.now)),
        schedules.filter(schedule => !samePeriod(template.schedules, schedule)).map(schedule => schedule.name),
      ]);
      await tx.query(DROP_SCHEDULES, [tenantId, template.id, names]);
      await tx.commit(
        ...noting(observer, { kind: 'protection-template.change', resourceId: template.id, resourceName: name }),
      );
    });
  }

  /** Snapshots that it made stay. Used by a volume or a volume group, or shipped: `failed_precondition`. */
  async remove(name: string, observer?: ChangeObserver): Promise<void> {
    const { tenantId } = this;
    const resource = `protection template ${name}`;
    await this.database.withTenant(tenantId, async tx => {
      await observer?.before?.(tx);
      const [template] = await tx.query<{ id: string; shipped: boolean }>(LOCK, [tenantId, name]);
      if (!template) throw new StorageError('not_found', `there is no ${resource}`, { resource });
      if (template.shipped)
        throw new StorageError('failed_precondition', `${resource} is shipped and stays`, { resource });
      await tx.query(LET_GO, [tenantId, template.id]);
      const [used] = await tx.query<{ volumes: number; groups: number }>(USED, [tenantId, template.id, name]);
      const { volumes, groups } = used!;
      if (volumes + groups > 0)
        throw new StorageError(
          'failed_precondition',
          `${resource} protects ${volumes > 0 ? counted(volumes, 'volume') : counted(groups, 'volume group')}`,
          { resource },
        );
      await tx.query(REMOVE, [tenantId, template.id]);
      await tx.commit(
        ...noting(observer, { kind: 'protection-template.delete', resourceId: template.id, resourceName: name }),
      );
    });
  }
}

interface Locked {
  id: string;
  shipped: boolean;
  schedules: Schedule[];
  now: Date;
}

const samePeriod = (before: readonly Schedule[], { name, everyMinutes, atMinutes }: Schedule): boolean =>
  before.some(known => known.name === name && known.everyMinutes === everyMinutes && known.atMinutes === atMinutes);

function requireSchedules(schedules: readonly Schedule[]): readonly Schedule[] {
  if (schedules.length === 0 || schedules.length > MOST_SCHEDULES)
    throw invalid('schedules', `expected 1 to ${MOST_SCHEDULES}`);
  if (new Set(schedules.map(({ name }) => name)).size < schedules.length)
    throw invalid('schedules', 'each needs a name of its own');
  for (const { name, everyMinutes, atMinutes, retain } of schedules) {
    if (!/^[a-z0-9][a-z0-9-]{0,31}$/.test(name))
      throw invalid('schedules', `"${name}": expected a name of 1 to 32 small letters, digits and dashes`);
    if (!Number.isInteger(everyMinutes) || everyMinutes < SHORTEST_MINUTES || everyMinutes > WEEK_MINUTES)
      throw invalid('schedules', `${name}: expected a period from 5 minutes to a week`);
    if (!Number.isInteger(atMinutes) || atMinutes < 0 || atMinutes >= everyMinutes)
      throw invalid('schedules', `${name}: it must begin within its period`);
    if (!Number.isInteger(retain) || retain < 1 || retain > MOST_RETAINED)
      throw invalid('schedules', `${name}: expected 1 to ${MOST_RETAINED} retained snapshots`);
  }
  return schedules;
}
