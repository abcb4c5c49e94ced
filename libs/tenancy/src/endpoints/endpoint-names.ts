import { DEFAULT_TENANT } from '#tenancy/credentials/login-name';

/** Of the tenant default: the doors of COSI_ENDPOINT and TRIVET_CSI_ENDPOINT. `migrate` makes them. */
export const COSI_ENDPOINT_NAME = 'cosi';
export const CSI_ENDPOINT_NAME = 'csi';

export const isConfigured = (tenant: string, name: string): boolean =>
  tenant === DEFAULT_TENANT && (name === COSI_ENDPOINT_NAME || name === CSI_ENDPOINT_NAME);
