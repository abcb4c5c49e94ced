let demanded = false;

/** From now on this process serves no pool of a cluster without a lease (daemon-lease.ts): there are other hosts. */
export function demandLeases(): void {
  demanded = true;
}

export const leasesAreDemanded = (): boolean => demanded;
