import { FIRST_IMAGE } from '#storage/block/drift/audit-place';
import { auditImages } from '#storage/block/drift/image-audit';
import type { AdminHouse } from '#test/admin/admin-house';
import { FILLED_BYTES } from '#test/bench/scale/filled-rows';
import type { Measured } from '#test/bench/scale/measured';
import { standInStores } from '#test/bench/scale/stand-in-stores';
import { periodicTasks } from '../../../apps/worker/src/periodic-tasks.js';

/** Walks through every image, for as long as that takes: a portion of it is measured. */
const AUDIT = 'block-drift';
const ROUND_MS = 20_000;

const RETENTION = 'round of change-retention';
/** Compares for an hour after a start, and then nothing for as long as a bench takes. */
const TALLIES = 'round of tally-check';
/** Of one tenant, which have changed since. */
const CHAINS = 8;

/** A round of each periodic task when nothing is due, as it is nearly always; and of retention when chains have changed. */
export function roundsOfTasks(house: AdminHouse): Measured[] {
  const { database, config, snapshotSessions: sessions, alerts, sender } = house.parts;
  const secrets = house.appliance.secrets;
  const tasks = periodicTasks({ config, database, secrets, sessions, alerts, sender, ...standInStores() });
  const before = async () => {
    await house.query('DELETE FROM trivet.operation_slot');
    await house.query('DELETE FROM trivet.change_upkeep');
    await house.query(
      `INSERT INTO trivet.change_upkeep (tenant_id, volume_id)
       SELECT tenant_id, id FROM trivet.volume WHERE tenant_id = scale.id(1, 7) AND state = 'ready' ORDER BY id LIMIT $1`,
      [CHAINS],
    );
  };
  const untried = () => house.query('TRUNCATE trivet.tally_pass, trivet.tally_portion, trivet.tally_change');
  const rounds = tasks
    .filter(({ name }) => name !== AUDIT)
    .map(task => ({ name: `round of ${task.name}`, run: () => task.run(AbortSignal.timeout(ROUND_MS)) }))
    .map(round => (round.name === TALLIES ? { ...round, before: untried } : round));
  return [
    ...rounds,
    { name: `portion of ${AUDIT}`, run: () => auditPortion(house) },
    { ...rounds.find(({ name }) => name === RETENTION)!, name: `${RETENTION}, ${CHAINS} chains`, before },
  ];
}

/** Of one tenant's volumes, all as they should be. */
async function auditPortion(house: AdminHouse): Promise<void> {
  const [place] = await house.query<{ tenantId: string; backendId: string }>(
    'SELECT scale.id(1, 7) AS "tenantId", scale.id(2, 7) AS "backendId"',
  );
  const volumes = {
    inspectImage: async () => ({
      state: 'present' as const,
      sizeBytes: FILLED_BYTES,
      allocatedBytes: 0n,
      readOnly: false,
    }),
  };
  const findings = {
    add: async (kind: string, subject: string) => {
      throw new Error(`${kind}: ${subject}`);
    },
  };
  const signal = AbortSignal.timeout(ROUND_MS);
  await auditImages(house.parts.database, place!, volumes, 'default', findings, FIRST_IMAGE, signal);
}
