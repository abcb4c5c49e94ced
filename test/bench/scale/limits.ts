/** Each look-up by an index touches a page for each level of it, and those are two at 1,000 rows and four at 10,000,000. */
const LIMIT = 2;
/** Of what touches a handful. */
const LEVELS = 24;

/** A statement for each tenant, which goes on where the hour before was cut off. */
const COMPARED = { limit: 1_000, because: 'once an hour all that is counted is compared with what counts it' };
/** With 1,000 volumes a tenant has one bucket, so a portion of one. */
const ASKED = { limit: 200, because: 'buckets that are due are asked for, a portion of 20 of each tenant' };
const LOOKED_FOR = {
  limit: 40,
  because: 'each tenant is looked for in an index; with 1,000 volumes all of it is read',
};
/** 0.6 s for 100 tenants with a million volumes. */
const COUNTED = { limit: 4, because: 'the volumes of each pool are counted by an index alone' };
const FEW = { limit: 4, because: 'all that have a condition are read, which are few' };
/** Of a tenant with 10,000 volumes 21 ms, at 1,000,000 volumes; an index of all parts of names would cost each creation. */
const SEARCHED = { limit: 300, because: 'part of a name is looked for in all names of the tenant' };
const ENDED = {
  limit: 100,
  because: 'index entries of operations that ended a moment ago are walked through until a vacuum',
};
/** With 1,000 volumes it is a handful of rows for each tenant, in indexes of two levels. */
const SWEPT = {
  limit: 600,
  because: 'a portion is gone through: up to 100 rows of each tenant or 500 of one, however many there are',
};

/** What may cost more than that with more volumes, and why. */
const JUSTIFIED: Readonly<Record<string, { limit: number; because: string }>> = {
  'volumes: search': SEARCHED,
  'volumes: search for what is not there': SEARCHED,
  'snapshots: search for what is not there': SEARCHED,
  'figures of the engine': ENDED,
  'operations: pending or running': ENDED,
  due: ENDED,
  'round of tally-check': COMPARED,
  'round of bucket-usage': ASKED,
  'round of protection': LOOKED_FOR,
  pools: COUNTED,
  'volumes: with a condition': FEW,
  'round of hidden-snapshots': SWEPT,
  'round of kept-images': SWEPT,
  'portion of block-drift': SWEPT,
  'round of change-index': SWEPT,
};

export const growth = (name: string): { limit: number; because?: string } => JUSTIFIED[name] ?? { limit: LIMIT };

/** @param least of the smallest size */
export const isWithin = (name: string, pages: number, least: number): boolean =>
  pages <= Math.max(least * growth(name).limit, least + LEVELS);
