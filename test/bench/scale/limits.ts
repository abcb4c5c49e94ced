const LIMIT = 1.25;
/** Pages: an index has one or two levels more, and a page of the heap holds rows of fewer tenants. */
const LEVELS = 24;

/** What may cost more than that with more volumes, and why. */
const JUSTIFIED: Readonly<Record<string, { limit: number; because: string }>> = {};

export const growth = (name: string): { limit: number; because?: string } => JUSTIFIED[name] ?? { limit: LIMIT };

/** @param least of the smallest size */
export const isWithin = (name: string, pages: number, least: number): boolean =>
  pages <= Math.max(least * growth(name).limit, least + LEVELS);
