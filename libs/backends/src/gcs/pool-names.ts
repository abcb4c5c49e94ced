/** A pool of the project's own, or that of its clusters of GKE, which has names of its own for members. */
export const POOL =
  /^(projects\/\d+\/locations\/global\/workloadIdentityPools\/[a-z0-9][a-z0-9-]{2,30}[a-z0-9]|[a-z][a-z0-9-]{4,28}[a-z0-9]\.svc\.id\.goog)$/;

export const isOfGke = (pool: string): boolean => pool.endsWith('.svc.id.goog');
