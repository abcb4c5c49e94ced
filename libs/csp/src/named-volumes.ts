import { textOf } from '#csp/config-values';
import { isName } from '#csp/request-body';
import type { CreateVolumeBody } from '#csp/volume-requests';
import { invalid } from '#platform/errors';
import type { BlockCaller, BlockStorage, VolumeRequest, VolumeView } from '#storage/block-storage';

/** Keys of `config` that name the volume that the new one is made of, or is. */
const CLONES = ['clone_of', 'import_vol_as_clone'] as const;
const IMPORT = 'import_volume_name';

export interface NamedVolume {
  key: (typeof CLONES)[number] | typeof IMPORT;
  name: string;
}

/** A StorageClass names volumes where CSI has ids. */
export function namedVolumeOf(body: CreateVolumeBody): NamedVolume | undefined {
  const [named, another] = [...CLONES, IMPORT].flatMap(key => {
    const name = textOf(body.config, key);
    return name ? [{ key, name } as NamedVolume] : [];
  });
  if (!named) return undefined;
  if (another) throw invalid(`config.${another.key}`, `cannot be given together with ${named.key}`);
  if (body.base_snapshot_id || body.parent_volume_id)
    throw invalid(`config.${named.key}`, 'the request has another source, which a claim names by its dataSource');
  if (named.name === body.name) throw invalid(`config.${named.key}`, `names the new volume, ${named.name}, itself`);
  return named;
}

/** Never an empty volume where a full one was wanted: what is not there is refused. */
export async function volumeNamed(
  storage: BlockStorage,
  caller: BlockCaller,
  { key, name }: NamedVolume,
): Promise<VolumeView> {
  const found = isName(name) ? await storage.findVolume(caller, name) : undefined;
  if (found) return found;
  throw invalid(`config.${key}`, `no volume is named "${name}" here; give the name of the volume, not of a claim`);
}

/** The source of a clone. A repeat is recognised by it also when that was deleted meanwhile. */
export async function sourceNamed(
  storage: BlockStorage,
  caller: BlockCaller,
  request: VolumeRequest,
  named: NamedVolume,
): Promise<VolumeRequest['source']> {
  const made = await storage.findVolume(caller, request.name);
  if (made?.cloneOf === named.name && made.baseSnapshotId === '' && made.parentVolumeId !== '')
    return { volumeId: made.parentVolumeId };
  return { volumeId: (await volumeNamed(storage, caller, named)).id };
}

export const isImport = ({ key }: NamedVolume): boolean => key === IMPORT;
