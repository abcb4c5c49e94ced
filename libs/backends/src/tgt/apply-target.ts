/**
 * A target made exactly as given. Everything here may be repeated, and interrupted between any two requests.
 *
 * Who may no longer come is shut out first, then accounts change, then who may come is let in; at no moment is somebody
 * admitted whom neither the old nor the new state admits. A unit is never deleted: hosts would see errors (I3).
 */
import type { AppliedTarget, TargetSpec } from '#backends/exporter';
import { Accounts } from '#backends/tgt/accounts';
import { reopen } from '#backends/tgt/grow-unit';
import type { ChapLogin } from '#backends/tgt/iscsi-login';
import { type KnownTarget, knownTarget } from '#backends/tgt/known-target';
import { connectionsOf, endConnections } from '#backends/tgt/sessions';
import { TargetStates } from '#backends/tgt/target-state';
import type { TgtClient } from '#backends/tgt/tgt-client';
import { locked, type RunningDaemon } from '#backends/tgt/tgt-daemons';
import { bindInitiator, deleteTarget, newTarget, newUnit, showTargets, updateUnit } from '#backends/tgt/tgt-request';
import { parseTargets } from '#backends/tgt/tgt-show';
import { identityOf, scsiIdOf, serialNumberIn, serialNumberOf } from '#backends/tgt/unit-identity';
import type { UnitStore } from '#backends/tgt/unit-store';
import { visit } from '#backends/tgt/visit';
import { StorageError } from '#platform/errors';

export interface Application {
  daemon: RunningDaemon;
  client: TgtClient;
  target: TargetSpec;
  logins: readonly ChapLogin[];
  path: string;
  store: UnitStore;
  signal: AbortSignal;
}

const NEW: KnownTarget = { initiators: [], accounts: [], unit: undefined, settled: undefined };

export async function applyTarget(application: Application): Promise<AppliedTarget> {
  const { daemon, client, target, path, signal } = application;
  const { tid, iqn, lun } = target;
  const states = new TargetStates(daemon.folder.state);
  const wanted = target.initiators.map(initiator => initiator.iqn);
  const isUnwanted = (initiator: string): boolean => !wanted.includes(initiator);

  const recorded = (await states.read(tid))?.iqn === iqn;
  const isNew = !recorded && (await client.tell(newTarget(tid, iqn), signal, 'target exists'));
  const known = isNew ? NEW : await knownTarget(client, states, target, signal);
  if (!known) throw new StorageError('unavailable', `target ${iqn} is just being removed`);
  await states.unsettle(tid);

  await endConnections(client, tid, known.initiators, isUnwanted, signal);
  const serialNumber = await applyUnit(application, known, isNew);
  const accounts = await applyAccounts(application, known, isNew);
  for (const initiator of wanted) {
    if (!known.initiators.includes(initiator))
      await client.tell(bindInitiator(tid, initiator), signal, 'initiator exists');
  }
  // Who was let in by what was withdrawn above, before it was.
  const left = (await connectionsOf(client, tid, signal)).filter(({ initiator }) => isUnwanted(initiator));
  if (left.length > 0) await endConnections(client, tid, [], isUnwanted, signal);

  await states.settle(tid, { iqn, lun, path, serialNumber, initiators: wanted, accounts });
  return { serialNumber, instance: daemon.instance };
}

/** The unit is there, online, on this image and with this volume's identity. Resolves to its serial number. */
async function applyUnit(application: Application, known: KnownTarget, isNew: boolean): Promise<string> {
  const { daemon, client, target, path, store, signal } = application;
  const { tid, iqn, lun, volumeId, identity } = target;
  const { unit } = known;
  const expected = serialNumberOf(scsiIdOf(volumeId));
  if (unit && unit.lun !== lun)
    throw new StorageError('internal', `target ${iqn} has unit ${unit.lun}`, { retry: 'person' });
  if (!unit)
    await addUnit(application).catch(async error => {
      if (isNew) await client.tell(deleteTarget(tid), signal, 'target active');
      throw error;
    });
  if (unit && (!unit.online || unit.removable || unit.path !== path)) await client.ask(reopen(tid, lun, path), signal);
  if (unit?.serialNumber === expected) return expected;
  const values: [string, string][] = [
    ...identityOf(volumeId, identity),
    ['thin_provisioning', store.discards && !target.thick ? '1' : '0'],
  ];
  await client.ask(updateUnit(tid, lun, values), signal);
  const { portals } = target.daemon;
  const wantsChap = known.accounts.length > 0;
  const page = await visit(daemon, client, { tid, iqn, lun, portals, wantsChap }, signal, visitor =>
    visitor.inquiryPage(0x83),
  );
  const serialNumber = serialNumberIn(page);
  if (serialNumber !== expected) {
    throw new StorageError('internal', `target ${iqn}: hosts see ${serialNumber ?? 'no NAA'} instead of ${expected}`);
  }
  return serialNumber;
}

async function addUnit({ daemon, client, target, path, store, signal }: Application): Promise<void> {
  const { tid, iqn, lun } = target;
  const add = async (): Promise<void> => {
    const options = await store.prepare(daemon.folder);
    if (!(await client.tell(newUnit(tid, lun, path, store.type, options), signal, 'invalid request')))
      // The image is there. It does not say why; a cluster that did not answer in time is one reason.
      throw new StorageError('failed_precondition', `target ${iqn}: tgtd cannot open ${path}`, { retry: 'later' });
  };
  const { maxUnits } = store;
  if (maxUnits === undefined) return add();
  // One at a time: each would find the last place free.
  await locked(daemon.folder, signal, async () => {
    const shown = parseTargets(await client.ask(showTargets(), signal));
    const units = shown.flatMap(found => found.units).filter(unit => unit.path !== undefined).length;
    if (units >= maxUnits)
      throw new StorageError(
        'resource_exhausted',
        `tgtd of pool ${target.daemon.pool} serves ${units} volumes, and ${maxUnits} at most (maxUnits): unpublish some, give the pool furtherPortals, or make new ones in another pool`,
      );
    await add();
  });
}

async function applyAccounts(
  { daemon, client, target, logins, signal }: Application,
  known: KnownTarget,
  isNew: boolean,
): Promise<string[]> {
  if (logins.length === 0 && known.accounts.length === 0 && (isNew || known.settled)) return [];
  return locked(daemon.folder, signal, () =>
    new Accounts(client, daemon.folder.state, signal).apply({
      tid: target.tid,
      current: known.accounts,
      unsettled: !isNew && !known.settled,
      wanted: logins,
      replace: target.replaceChap ?? false,
    }),
  );
}
