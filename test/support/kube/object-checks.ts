import type { Asked } from '#test/support/kube/resources';
import { type KubeObject, type Metadata, StatusError } from '#test/support/kube/stored-objects';

/** What an API server asks of every object, and of leases. Of its other kinds nothing is checked here. */
const KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const LABEL = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const MAX_ANNOTATIONS_BYTES = 256 * 1024;
const MICRO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)$/;

/** What is sent says the same as its path. */
export function requireFitting({ resource, namespace, name }: Asked, { apiVersion, metadata }: KubeObject): void {
  const wanted = `${resource.group}/${resource.version}`;
  const refuse = (message: string): never => {
    throw new StatusError(400, 'BadRequest', message);
  };
  if (apiVersion !== wanted)
    refuse(`the API version in the data (${apiVersion}) does not match the expected API version (${wanted})`);
  if ((metadata.namespace ?? namespace) !== namespace)
    refuse('the namespace of the provided object does not match the namespace sent on the request');
  if (name !== undefined && metadata.name !== name)
    refuse(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
}

export function problemsOfMetadata({ labels = {}, annotations = {} }: Metadata): string[] {
  const problems: string[] = [];
  for (const [key, value] of Object.entries(labels))
    if (!KEY.test(key) || !LABEL.test(value)) problems.push(`metadata.labels: Invalid value: "${key}=${value}"`);
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations)) {
    if (!KEY.test(key.toLowerCase())) problems.push(`metadata.annotations: Invalid value: "${key}"`);
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (bytes > MAX_ANNOTATIONS_BYTES)
    problems.push(`metadata.annotations: Too long: may not be more than ${MAX_ANNOTATIONS_BYTES} bytes`);
  return problems;
}

interface LeaseSpec {
  leaseDurationSeconds?: number;
  acquireTime?: string;
  renewTime?: string;
}

export function problemsOfKnown({ kind, spec }: KubeObject): string[] {
  if (kind !== 'Lease') return [];
  const { leaseDurationSeconds, acquireTime, renewTime } = (spec ?? {}) as LeaseSpec;
  // Not even read, so it is no object that is invalid.
  for (const time of [acquireTime, renewTime])
    if (time && !MICRO_TIME.test(time)) throw new StatusError(400, 'BadRequest', `cannot parse "${time}"`);
  const isValid = leaseDurationSeconds === undefined || leaseDurationSeconds > 0;
  return isValid ? [] : ['spec.leaseDurationSeconds: Invalid value: must be greater than 0'];
}
