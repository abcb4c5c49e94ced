import { describe, expect, it } from 'vitest';
import { changedRows } from './watch-list.js';

interface Row {
  id?: string;
  tenant?: string;
  name: string;
  state: string;
}

const line = (told: 'is' | 'gone', { name, state }: Row): string => `${told} ${name} ${state}`;
const row = (id: string, state = 'ready'): Row => ({ id, name: `n-${id}`, state });

describe('rows that changed', () => {
  it('are all of them at first', () => {
    expect(changedRows(undefined, [row('a'), row('b')], line)).toEqual(['is n-a ready', 'is n-b ready']);
  });

  it('are none when nothing did, in whatever order they come', () => {
    expect(changedRows([row('a'), row('b')], [row('b'), row('a')], line)).toEqual([]);
  });

  it('are the new ones, those that are not as they were, and those that are gone', () => {
    const before = [row('a'), row('b', 'creating'), row('c')];
    expect(changedRows(before, [row('a'), row('b'), row('d')], line)).toEqual([
      'is n-b ready',
      'is n-d ready',
      'gone n-c ready',
    ]);
  });

  it('are told apart by tenant and name where there is no id', () => {
    const of = (tenant: string, state: string): Row => ({ tenant, name: 'same', state });
    expect(changedRows([of('acme', 'up'), of('beta', 'up')], [of('acme', 'up'), of('beta', 'down')], line)).toEqual([
      'is same down',
    ]);
  });
});
