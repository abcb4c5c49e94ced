import type { PublicDoors } from '#admin/first-run/manifests';
import type { OverviewParts } from '#admin/overview/overview';
import type { TaskState } from '#operations/periodic/periodic-task';
import { key } from '#platform/process/providers';
import type { EndpointDoors } from '#tenancy/endpoints/endpoint-doors';

/** Sockets of tenants, which the gateway opens. */
export const ENDPOINT_SOCKETS = key<EndpointDoors>('EndpointDoors');
export interface Served extends Pick<OverviewParts, 'legs' | 'certificate'> {
  /** Where callers in clusters reach it, as far as it was told. */
  doors(): PublicDoors;
  /** What it does again and again. */
  tasks(): TaskState[];
}

/** How this gateway serves. */
export const SERVED = key<Served>('what this gateway serves');
