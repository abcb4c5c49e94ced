import type { TargetRef } from '#backends/exporter';
import type { TargetState, TargetStates } from '#backends/tgt/target-state';
import type { TgtClient } from '#backends/tgt/tgt-client';
import { showTargets } from '#backends/tgt/tgt-request';
import { parseTargets, type ShownUnit } from '#backends/tgt/tgt-show';
import { serialNumberOf } from '#backends/tgt/unit-identity';
import { StorageError } from '#platform/errors';

/** A target as the daemon holds it. */
export interface KnownTarget {
  initiators: readonly string[];
  accounts: readonly string[];
  unit: (Pick<ShownUnit, 'lun' | 'path' | 'online' | 'removable'> & { serialNumber: string }) | undefined;
  /** What was recorded, when it can be trusted. */
  settled: TargetState | undefined;
}

/** From its record, else from the daemon. Undefined: no such target. Another one under its tid or name is an error. */
export async function knownTarget(
  client: TgtClient,
  states: TargetStates,
  { tid, iqn }: TargetRef,
  signal: AbortSignal,
): Promise<KnownTarget | undefined> {
  const settled = await states.read(tid);
  if (settled?.iqn === iqn) {
    const { lun, path, serialNumber, initiators, accounts } = settled;
    return { initiators, accounts, unit: { lun, path, serialNumber, online: true, removable: false }, settled };
  }
  const all = parseTargets(await client.ask(showTargets(), signal));
  const found = all.find(target => target.tid === tid || target.iqn === iqn);
  if (!found) return undefined;
  if (found.tid !== tid || found.iqn !== iqn) {
    throw new StorageError('failed_precondition', `target ${tid} ${iqn}: tgtd has target ${found.tid} ${found.iqn}`, {
      retry: 'person',
    });
  }
  // Unit 0 is the controller that tgt puts into each target.
  const unit = found.units.find(({ lun }) => lun !== 0);
  return {
    initiators: found.initiators,
    accounts: found.accounts,
    unit: unit && { ...unit, path: unit.path, serialNumber: serialNumberOf(unit.scsiId) },
    settled: undefined,
  };
}
