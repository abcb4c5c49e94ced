import { request } from 'node:https';
import { type Answer, CbtClient } from '#test/cbt/client';
import type { Value } from '#test/cbt/wire';

/** Where an API server is, and as whom to come. */
export interface Kubeconfig {
  server: string;
  ca: Buffer | undefined;
  token: string;
}

export interface ReaderArgs {
  namespace: string;
  snapshotName: string;
  /** The handle of the base, or its name. */
  prevSnapshotId?: string;
  prevSnapshotName?: string;
  startingOffset?: number;
  maxResults?: number;
  /** Whose token the door is to get. */
  account: { namespace: string; name: string };
}

interface Found {
  status?: { boundVolumeSnapshotContentName?: string; snapshotHandle?: string; token?: string };
  spec: { driver?: string; audience?: string; address?: string; caCert?: string };
}

const EXPIRY_SECONDS = 600;

/**
 * What kubernetes-csi/external-snapshot-metadata 1.1 does in pkg/iterator (iter.go), which its lister and verifier call, and Velero: driver
 * of the snapshot, SnapshotMetadataService of that name, a token for its audience (TokenRequest), then one call at its address, whose
 * certificate is checked by its caCert. The base of a delta is named by its handle.
 */
export class CommunityReader {
  constructor(private readonly api: Kubeconfig) {}

  async read(args: ReaderArgs): Promise<Answer> {
    const { namespace, snapshotName, startingOffset = 0, maxResults = 0 } = args;
    const { spec } = await this.content(namespace, snapshotName);
    const service = await this.get(`/apis/cbt.storage.k8s.io/v1beta1/snapshotmetadataservices/${spec.driver}`);
    const { audience, address, caCert } = service.spec;
    const token = await this.token(args.account, audience!);
    const client = CbtClient.overTls(Number(address!.split(':').at(-1)), Buffer.from(caCert!, 'base64').toString());
    const base = args.prevSnapshotId ?? (await this.handle(namespace, args.prevSnapshotName));
    const method = base === undefined ? 'GetMetadataAllocated' : 'GetMetadataDelta';
    const fields: Record<number, Value> =
      base === undefined
        ? { 1: token, 2: namespace, 3: snapshotName, 4: startingOffset, 5: maxResults }
        : { 1: token, 2: namespace, 3: base, 4: snapshotName, 5: startingOffset, 6: maxResults };
    return client.call(`/snapshotmetadata.SnapshotMetadata/${method}`, fields).finally(() => client.close());
  }

  async token(account: ReaderArgs['account'], audience: string): Promise<string> {
    const spec = { audiences: [audience], expirationSeconds: EXPIRY_SECONDS };
    const path = `/api/v1/namespaces/${account.namespace}/serviceaccounts/${account.name}/token`;
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
    return (await this.call('POST', path, body)).status!.token!;
  }

  private async handle(namespace: string, name: string | undefined): Promise<string | undefined> {
    return name === undefined ? undefined : (await this.content(namespace, name)).status!.snapshotHandle;
  }

  private async content(namespace: string, name: string): Promise<Found> {
    const root = '/apis/snapshot.storage.k8s.io/v1';
    const { status } = await this.get(`${root}/namespaces/${namespace}/volumesnapshots/${name}`);
    return this.get(`${root}/volumesnapshotcontents/${status!.boundVolumeSnapshotContentName}`);
  }

  private get(path: string): Promise<Found> {
    return this.call('GET', path);
  }

  private call(method: string, path: string, body?: object): Promise<Found> {
    const { server, ca, token } = this.api;
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const call = request(new URL(path, server), { method, ca, headers }, reply => {
        let text = '';
        reply.setEncoding('utf8').on('data', chunk => {
          text += chunk;
        });
        reply.on('end', () => {
          if (reply.statusCode! < 300) resolve(JSON.parse(text));
          else reject(new Error(`${method} ${path}: ${reply.statusCode} ${text}`));
        });
      });
      call.once('error', reject);
      call.end(body && JSON.stringify(body));
    });
  }
}
