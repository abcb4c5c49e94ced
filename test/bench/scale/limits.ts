/** Each look-up by an index touches a page for each level of it, and those are two at 1,000 rows and four at 10,000,000. */
const LIMIT = 2;
/** Of what touches a handful. */
const LEVELS = 24;

const ASKED = { limit: 20, because: 'buckets that are due are asked for, a portion of each tenant' };
const FEW = { limit: 4, because: 'all that have a condition are read, which are few' };
/** Of a tenant with 10,000 volumes 21 ms, at 1,000,000 volumes; an index of all parts of names would cost each creation. */
const SEARCHED = { limit: 300, because: 'part of a name is looked for in all names of the tenant' };
/** Whoever knows how the name begins has /search, which goes by an index. */
const SEARCHED_OF_ALL = { limit: 2_000, because: 'part of a name is looked for in all names there are' };
/** Whatever each has: the first few of it are found by its index, and read. */
const OF_EACH = {
  limit: 4,
  because: 'the first five of each tenant are read, and the smallest appliance has fewer that fit',
};
const ENDED = {
  limit: 100,
  because: 'index entries of operations that ended a moment ago are walked through until a vacuum',
};
const COMPARED = { limit: 5, because: 'up to 2,500 rows are compared, and a tenant of the smallest appliance has 200' };
const BOUNDED = { limit: 20, because: 'up to 1,000 rows are gone through, and the smallest appliance has 100' };
const HOURLY = {
  limit: 100,
  because: 'once an hour all volumes are read, in portions of 500; else it is asked whether the hour is measured',
};
const SWEPT = {
  limit: 100,
  because: 'a portion is gone through: up to 100 rows of each tenant, or 500 of a pool, however many there are',
};

/** What may cost more than that with more volumes, and why. */
const JUSTIFIED: Readonly<Record<string, { limit: number; because: string }>> = {
  'volumes: search': SEARCHED,
  'volumes: search for what is not there': SEARCHED,
  'snapshots: search for what is not there': SEARCHED,
  'volumes of all tenants: search for what is not there': SEARCHED_OF_ALL,
  'search: what begins so, of all tenants': OF_EACH,
  'figures of the engine': ENDED,
  'operations: pending or running': ENDED,
  due: ENDED,
  'round of tally-check': COMPARED,
  'round of bucket-usage': ASKED,
  'round of usage': HOURLY,
  'volumes: with a condition': FEW,
  'round of hidden-snapshots': BOUNDED,
  'round of kept-images': SWEPT,
  'portion of block-drift': SWEPT,
  'round of change-index': SWEPT,
};

export const growth = (name: string): { limit: number; because?: string } => JUSTIFIED[name] ?? { limit: LIMIT };

/** @param least of the smallest size */
export const isWithin = (name: string, pages: number, least: number): boolean =>
  pages <= Math.max(least * growth(name).limit, least + LEVELS);
