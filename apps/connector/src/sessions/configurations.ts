import { isDeepStrictEqual } from 'node:util';
import type { KubeClient } from '../kube/kube-client.js';
import { CONFIGURATIONS, DRIVER_LABEL, type ServiceConfiguration } from './resources.js';
import { orNothing } from './snapshot-handles.js';

const REMEMBERED_MS = 5_000;

/** Which CSI drivers serve SnapshotMetadata, and where. */
export class Configurations {
  private readonly known = new Map<string, { found: ServiceConfiguration; until: number }>();

  constructor(private readonly kube: KubeClient) {}

  async of(driver: string, signal: AbortSignal): Promise<ServiceConfiguration | undefined> {
    const known = this.known.get(driver);
    if (known && known.until > performance.now()) return known.found;
    this.known.delete(driver);
    const query = { labelSelector: `${DRIVER_LABEL}=${driver}`, limit: '1' };
    for await (const { items } of this.kube.pages<ServiceConfiguration>(CONFIGURATIONS, {}, query, signal)) {
      const [found] = items;
      if (found) this.known.set(driver, { found, until: performance.now() + REMEMBERED_MS });
      return found;
    }
    return undefined;
  }
}

/** What the sidecar says of itself; made when it is not there, and put right when it is another. */
export async function publishConfiguration(
  kube: KubeClient,
  driver: string,
  { address, ca }: { address: string; ca: string },
): Promise<void> {
  const name = driver.toLowerCase();
  const spec = { address, caCert: Buffer.from(ca).toString('base64'), namespace: kube.namespace };
  const found = await orNothing(kube.get<ServiceConfiguration>(CONFIGURATIONS, { name }));
  if (!found) {
    const metadata = { name, labels: { [DRIVER_LABEL]: driver } };
    const body = { apiVersion: CONFIGURATIONS.api, kind: 'SnapshotServiceConfiguration', metadata, spec };
    await kube.create(CONFIGURATIONS, {}, body);
    return;
  }
  if (isDeepStrictEqual(found.spec, spec) && found.metadata.labels?.[DRIVER_LABEL] === driver) return;
  const labels = { ...found.metadata.labels, [DRIVER_LABEL]: driver };
  await kube.replace(CONFIGURATIONS, { name }, { ...found, metadata: { ...found.metadata, labels }, spec });
}
