/** Of every list, and what links of the appliance say of a list that is of one tenant anyway. */
const OF_ALL: ReadonlySet<string> = new Set(['cursor', 'columns', 'limit', 'sort', 'tenant']);

export const unknownOf = (given: Iterable<string>, known: readonly string[]): string[] =>
  [...new Set(given)].filter(name => !OF_ALL.has(name) && !known.includes(name));
