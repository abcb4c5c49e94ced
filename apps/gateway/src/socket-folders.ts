import fs from 'node:fs';
import { join } from 'node:path';
import { groupId, removeStaleSocket } from '#platform/connections/unix-socket';
import { makeFolders } from '#platform/make-folders';
import type { Protocol, SocketPlace } from './endpoint-sockets.js';

const SOCKETS = { cosi: 'cosi.sock', csi: 'csi.sock' } as const;
/** Passable and not readable: who may connect to one socket learns nothing of the other tenants. */
const PASSABLE = 0o711;

/** Makes the folder of a socket, for root and the group. What the last life of another protocol left there goes. */
export async function makeFolder(
  { base, tenantFolder, folder }: SocketPlace,
  protocol: Protocol,
  group: string | undefined,
): Promise<void> {
  const gid = group === undefined ? undefined : groupId(group, 'group');
  // Whatever the umask is; a folder that was there is as somebody made it.
  if (makeFolders(base) !== undefined) fs.chmodSync(base, PASSABLE);
  for (const [path, mode] of [
    [tenantFolder, PASSABLE],
    [folder, 0o700],
  ] as const)
    if (!fs.existsSync(path)) fs.mkdirSync(path, { mode });
  if (!fs.lstatSync(folder).isDirectory()) throw new Error(`${folder} is no folder`);
  // The group first: at no moment anybody has more than in the end.
  if (gid !== undefined) fs.chownSync(folder, -1, gid);
  fs.chmodSync(folder, gid === undefined ? 0o700 : 0o750);
  fs.chmodSync(tenantFolder, PASSABLE);
  const other = join(folder, protocol === 'cosi' ? SOCKETS.csi : SOCKETS.cosi);
  if (fs.existsSync(other)) await removeStaleSocket(other);
}

/** Of an endpoint that is no more. What somebody else put there stays, and so does the folder then. */
export function removeFolder({ tenantFolder, folder }: Pick<SocketPlace, 'tenantFolder' | 'folder'>): void {
  for (const path of [folder, tenantFolder]) if (!removeIfEmpty(path)) return;
}

/**
 * What a gateway that was killed left of endpoints that are no more: sockets that nobody serves, and their empty folders.
 * @param wanted `tenant/name` of every endpoint
 */
export async function sweepFolders(base: string, wanted: ReadonlySet<string>): Promise<void> {
  for (const tenant of foldersIn(base)) {
    const tenantFolder = join(base, tenant);
    for (const name of foldersIn(tenantFolder)) {
      if (wanted.has(`${tenant}/${name}`)) continue;
      const folder = join(tenantFolder, name);
      for (const socket of Object.values(SOCKETS)) {
        const path = join(folder, socket);
        if (fs.lstatSync(path, { throwIfNoEntry: false })?.isSocket()) await removeStaleSocket(path);
      }
      removeIfEmpty(folder);
    }
    removeIfEmpty(tenantFolder);
  }
}

const foldersIn = (path: string): string[] => {
  try {
    return fs
      .readdirSync(path, { withFileTypes: true })
      .filter(entry => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
};

function removeIfEmpty(path: string): boolean {
  try {
    fs.rmdirSync(path);
    return true;
  } catch {
    return false;
  }
}
