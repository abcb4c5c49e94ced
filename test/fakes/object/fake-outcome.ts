/** What the effect did: a repeat that found everything as asked is `unchanged`. */
export type EffectOutcome = 'created' | 'changed' | 'deleted' | 'unchanged';

export const outcome = (what: EffectOutcome, rows: number): EffectOutcome => (rows > 0 ? what : 'unchanged');
