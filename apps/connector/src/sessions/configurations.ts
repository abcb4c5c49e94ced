import type { KubeClient } from '../kube/kube-client.js';
import { CONFIGURATIONS, DRIVER_LABEL, type ServiceConfiguration } from './resources.js';

/** For so long sessions are made by what was found last. */
export const REMEMBERED_MS = 5_000;

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
