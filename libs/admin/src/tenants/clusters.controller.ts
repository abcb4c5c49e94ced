import { Controller } from '@nestjs/common';
import { type ClusterReply, clusterRoutes } from '#admin/contract/clusters';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import { Clusters, type ClusterView } from '#tenancy/clusters/clusters';

const MINUTE_MS = 60_000;

@Controller()
export class ClustersController {
  constructor(private readonly clusters: Clusters) {}

  @Serves(clusterRoutes.list)
  list(@Call() call: AdminCall<typeof clusterRoutes.list>) {
    return answerPage(call, page => this.clusters.list(call.tenant, page), shown);
  }

  @Serves(clusterRoutes.get)
  async get(@Call() call: AdminCall<typeof clusterRoutes.get>): Promise<ClusterReply> {
    return shown(await this.clusters.get(call.tenant, call.params.cluster));
  }

  @Serves(clusterRoutes.createJoinToken)
  async createJoinToken(@Call() call: AdminCall<typeof clusterRoutes.createJoinToken>) {
    const { cluster, endpoints, expiresInMinutes } = call.body;
    const wanted = { cluster, endpoints, expiresInMs: expiresInMinutes * MINUTE_MS };
    const { expiresAt, ...made } = await this.clusters.createJoinToken(call.actor, call.tenant, wanted);
    return { ...made, expiresAt: expiresAt.toISOString() };
  }

  @Serves(clusterRoutes.revoke)
  async revoke(@Call() call: AdminCall<typeof clusterRoutes.revoke>): Promise<ClusterReply> {
    return shown(await this.clusters.revoke(call.actor, call.tenant, call.params.cluster, call.body.reason));
  }

  @Serves(clusterRoutes.rotate)
  async rotate(@Call() call: AdminCall<typeof clusterRoutes.rotate>): Promise<ClusterReply> {
    return shown(await this.clusters.rotate(call.actor, call.tenant, call.params.cluster, call.body.reason));
  }
}

const shown = ({
  certificateUntil,
  seenAt,
  isSilent,
  rotateFrom,
  revokedAt,
  createdAt,
  ...view
}: ClusterView): ClusterReply => ({
  ...view,
  state: revokedAt !== null ? 'revoked' : isSilent ? 'silent' : 'active',
  certificateUntil: certificateUntil.toISOString(),
  seenAt: seenAt.toISOString(),
  rotateFrom: rotateFrom?.toISOString() ?? null,
  revokedAt: revokedAt?.toISOString() ?? null,
  createdAt: createdAt.toISOString(),
});
