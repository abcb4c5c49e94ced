import type { UserInfo } from '#test/support/kube/rbac';
import { type KubeObject, StatusError } from '#test/support/kube/stored-objects';
import type { Schema } from '#test/support/kube/structural-schema';

export interface Resource {
  group: string;
  version: string;
  plural: string;
  kind: string;
  isNamespaced: boolean;
  hasStatus: boolean;
  /** Answered, never stored. */
  review?: boolean;
  schema?: Schema;
  /** What it is stored under. */
  key: string;
}

/** What a path names. */
export interface ResourceName {
  namespace?: string;
  name?: string;
  subresource?: string;
}

const known = (
  group: string,
  version: string,
  plural: string,
  kind: string,
  isNamespaced: boolean,
  hasStatus = false,
): Resource => ({
  group,
  version,
  plural,
  kind,
  isNamespaced,
  hasStatus,
  key: `${group}/${plural}`,
});

/** A call that was understood. */
export interface Asked extends ResourceName {
  resource: Resource;
  user: UserInfo;
  query: URLSearchParams;
  body: KubeObject | undefined;
}

/** Those that an API server has itself, and those of the snapshot controller, without their schemas. */
const KNOWN: readonly Resource[] = [
  known('coordination.k8s.io', 'v1', 'leases', 'Lease', true),
  known('events.k8s.io', 'v1', 'events', 'Event', true),
  known('snapshot.storage.k8s.io', 'v1', 'volumesnapshots', 'VolumeSnapshot', true, true),
  known('snapshot.storage.k8s.io', 'v1', 'volumesnapshotcontents', 'VolumeSnapshotContent', false, true),
  { ...known('authorization.k8s.io', 'v1', 'subjectaccessreviews', 'SubjectAccessReview', false), review: true },
  { ...known('authentication.k8s.io', 'v1', 'tokenreviews', 'TokenReview', false), review: true },
];

interface Definition {
  group: string;
  scope: string;
  names: { plural: string; kind: string };
  versions: { name: string; subresources?: { status?: object }; schema: { openAPIV3Schema: Schema } }[];
}

export class Resources {
  private readonly all = new Map(
    KNOWN.map(resource => [`${resource.group}/${resource.version}/${resource.plural}`, resource]),
  );

  /** Of a CustomResourceDefinition. */
  define({ metadata, spec }: KubeObject): void {
    const { group, scope, names, versions } = spec as Definition;
    const approved = metadata.annotations?.['api-approved.kubernetes.io'] ?? '';
    if (/(^|[.])(k8s|kubernetes)[.]io$/.test(group) && !/^(https:\/\/|unapproved)/.test(approved))
      throw new StatusError(422, 'Invalid', 'metadata.annotations[api-approved.kubernetes.io]: Required value');
    if (metadata.name !== `${names.plural}.${group}`)
      throw new StatusError(422, 'Invalid', `metadata.name: must be ${names.plural}.${group}`);
    for (const { name, subresources, schema } of versions) {
      const resource = known(
        group,
        name,
        names.plural,
        names.kind,
        scope === 'Namespaced',
        Boolean(subresources?.status),
      );
      this.all.set(`${group}/${name}/${names.plural}`, { ...resource, schema: schema.openAPIV3Schema });
    }
  }

  find(path: string): ResourceName & { resource: Resource } {
    const [root, group, version, ...rest] = path.slice(1).split('/').map(decodeURIComponent);
    const isIn = rest[0] === 'namespaces' && rest.length > 2;
    const [plural, name, subresource] = isIn ? rest.slice(2) : rest;
    const resource = this.all.get(`${group}/${version}/${plural}`);
    const isThere = root === 'apis' && resource && (!subresource || (subresource === 'status' && resource.hasStatus));
    const isPlaced = isIn === resource?.isNamespaced || (!isIn && name === undefined);
    if (!isThere || !isPlaced)
      throw new StatusError(404, 'NotFound', 'the server could not find the requested resource');
    return {
      resource,
      ...(isIn ? { namespace: rest[1]! } : {}),
      ...(name === undefined ? {} : { name }),
      ...(subresource === undefined ? {} : { subresource }),
    };
  }
}
