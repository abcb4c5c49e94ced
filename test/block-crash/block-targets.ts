import { HostFences } from '#backends/host-fence';
import { TgtExporter } from '#backends/tgt/tgt-exporter';
import type { Host } from '#test/block-crash/block-jobs';
import type { TestAppliance } from '#test/support/appliance';
import { Initiator, type InitiatorSession } from '#test/support/initiator';
import { targetName } from '#test/support/target-name';

export interface Target {
  tid: number;
  iqn: string;
  path: string | undefined;
  /** Sorted. */
  initiators: string[];
  /** Initiators that are logged in. */
  sessions: string[];
}

/** What the daemon of the one pool serves now: asked of tgtd itself, or of the fake's state. */
export async function targetsOf(appliance: TestAppliance): Promise<Target[]> {
  const found = appliance.fakeBlock
    ? appliance.fakeBlock.targets().map(target => ({ ...target, initiators: target.initiators.map(({ iqn }) => iqn) }))
    : (await observed(appliance)).map(target => ({
        ...target,
        sessions: target.sessions.map(({ initiator }) => initiator),
      }));
  return found.map(({ tid, iqn, path, initiators, sessions }) => ({
    tid,
    iqn,
    path,
    initiators: [...initiators].sort(),
    sessions: [...sessions],
  }));
}

async function observed(appliance: TestAppliance) {
  const { tgtPath, portal } = appliance.blockFolders;
  const [row] = await appliance.database.query<{ tenant_id: string; name: string }>(
    'SELECT tenant_id, name FROM trivet.pool',
  );
  if (!row) return [];
  const nowhere = () => Promise.reject(new Error('only listed'));
  const exporter = new TgtExporter({
    folder: tgtPath,
    volumes: { inspectImage: nowhere, pathOf: () => '' },
    fences: new HostFences(`${tgtPath}/fences-of-tests`),
  });
  const daemon = { tenantId: row.tenant_id, pool: row.name, portals: [portal] };
  return exporter.listTargets(daemon, AbortSignal.timeout(10_000));
}

/** A login of the host to the real target, for as long as `use` takes. */
export async function withSession<T>(
  appliance: TestAppliance,
  host: Host,
  volumeId: string,
  use: (session: InitiatorSession) => Promise<T>,
): Promise<T> {
  const session = await login(appliance, host, volumeId);
  try {
    return await use(session);
  } finally {
    await session.close();
  }
}

export const login = ({ blockFolders }: TestAppliance, { iqns }: Host, volumeId: string): Promise<InitiatorSession> =>
  new Initiator(iqns[0]!).login(blockFolders.portal, targetName(volumeId), LUN);

const LUN = 1;
