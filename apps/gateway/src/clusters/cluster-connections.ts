import type { TLSSocket } from 'node:tls';
import type { ClusterId } from '#tenancy/clusters/authority';
import type { ClusterEnrolment } from '#tenancy/clusters/cluster-enrolment';
import { isRotatedAway } from '#tenancy/clusters/validity';
import { clusterConnections } from './cluster-metrics.js';

export interface ComingCluster extends ClusterId {
  /** The end of its certificate. */
  until: Date;
  /** When that was signed. */
  signed: Date;
}

/** Connections of clusters that are open here. Those of a cluster that was revoked end, whatever they carry. */
export class ClusterConnections {
  private readonly open = new Map<TLSSocket, ComingCluster>();

  constructor(private readonly enrolment: Pick<ClusterEnrolment, 'serving'>) {}

  add(connection: TLSSocket, cluster: ComingCluster): void {
    this.open.set(connection, cluster);
    clusterConnections.set(this.open.size);
    connection.once('close', () => {
      this.open.delete(connection);
      clusterConnections.set(this.open.size);
    });
  }

  /** A database that is away says nothing about a cluster: those that are in stay. */
  async look(): Promise<void> {
    // Who comes in meanwhile was looked at by the door.
    const asked = [...this.open];
    if (asked.length === 0) return;
    const clusters = new Map(asked.map(([, cluster]) => [cluster.clusterId, cluster]));
    const serving = await this.enrolment.serving([...clusters.values()]);
    for (const [connection, { clusterId, until, signed }] of asked) {
      const rotateFrom = serving.get(clusterId);
      if (rotateFrom === undefined || isRotatedAway(signed, rotateFrom) || until.getTime() < Date.now())
        connection.destroy();
    }
  }
}
