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
    expect(changedRows(undefined, { items: [row('a'), row('b')] }, line)).toEqual(['is n-a ready', 'is n-b ready']);
  });

  it('are none when nothing did, in whatever order they come', () => {
    expect(changedRows([row('a'), row('b')], { items: [row('b'), row('a')] }, line)).toEqual([]);
  });

  it('are the new ones, those that are not as they were, and those that are gone', () => {
    const before = [row('a'), row('b', 'creating'), row('c')];
    expect(changedRows(before, { items: [row('a'), row('b'), row('d')], next: null }, line)).toEqual([
      'is n-b ready',
      'is n-d ready',
      'gone n-c ready',
    ]);
  });

  it('are told apart by tenant and name where there is no id', () => {
    const of = (tenant: string, state: string): Row => ({ tenant, name: 'same', state });
    expect(
      changedRows([of('acme', 'up'), of('beta', 'up')], { items: [of('acme', 'up'), of('beta', 'down')] }, line),
    ).toEqual(['is same down']);
  });

  it('are told apart by backend, too: pools of two may have one name', () => {
    const of = (backend: string, state: string) => ({ backend, name: 'main', state });
    const before = [of('local', 'up'), of('far', 'up')];
    expect(changedRows(before, { items: before }, line)).toEqual([]);
    expect(changedRows(before, { items: [of('local', 'down'), of('far', 'up')] }, line)).toEqual(['is main down']);
    const twins = [row('a'), row('b')].map(({ state }) => ({ name: 'twin', state }));
    expect(changedRows(twins, { items: twins }, line)).toEqual([]);
  });

  it('are not those that moved behind the limit: only a list that has come whole says that one is gone', () => {
    const before = [row('a'), row('b')];
    expect(changedRows(before, { items: [row('new'), row('a')], next: 'more' }, line)).toEqual(['is n-new ready']);
    expect(changedRows(before, { items: [row('new'), row('a')], next: null }, line)).toEqual([
      'is n-new ready',
      'gone n-b ready',
    ]);
  });

  it('are not those that were only looked at again', () => {
    const at = (checkedAt: string, used: string) => ({ name: 'main', state: used, checkedAt });
    expect(changedRows([at('10:00', '1')], { items: [at('10:10', '1')] }, line)).toEqual([]);
    expect(changedRows([at('10:00', '1')], { items: [at('10:10', '2')] }, line)).toEqual(['is main 2']);
  });
});
