import { describe, expect, it } from 'vitest';
import { defineOperation, type OperationTraits } from '#operations/define-operation';
import type { LeasedOperation } from '#operations/operation';

const paint = defineOperation<{ colour: string; coats?: number }>('wall.paint', {
  resourceKind: 'wall',
  class: 'fast',
  slots: (id, { colour }) => [{ resource: id, slot: colour, own: true }],
});
const strip = defineOperation<{ all: boolean }>('wall.strip', {
  resourceKind: 'wall',
  class: 'destroy',
  slots: id => [{ resource: id, slot: 'surface', own: true }],
  negates: ({ all }) => (all ? [paint] : []),
});
const origin = { id: 'o', tenantId: 't', backendId: 'b', unattended: true } as const;

describe('a defined operation', () => {
  it('is asked with all that follows from its kind and its request', () => {
    const asked = { resourceId: 'w', resourceName: 'north', request: { colour: 'red' } };
    const moreSlots = [{ resource: 'x', slot: 'y', own: false }];
    expect(paint.asked({ ...asked, class: 'copy', moreSlots }, origin)).toEqual({
      ...origin,
      ...asked,
      kind: 'wall.paint',
      class: 'copy',
      resourceKind: 'wall',
      slots: [{ resource: 'w', slot: 'red', own: true }, ...moreSlots],
    });
    expect(paint.asked(asked, origin)).toMatchObject({ class: 'fast', negates: undefined });
  });

  it('negates by definitions', () => {
    const negated = (all: boolean) =>
      strip.asked({ resourceId: 'w', resourceName: 'north', request: { all } }, origin).negates;
    expect(negated(true)).toEqual(['wall.paint']);
    expect(negated(false)).toEqual([]);
  });

  it('reads no request of another kind', () => {
    const operation = { kind: 'wall.paint', request: { colour: 'red' } } as unknown as LeasedOperation;
    expect(paint.requestOf(operation).colour).toBe('red');
    expect(() => strip.requestOf(operation)).toThrow(/wall.paint is not that of wall.strip/);
  });

  it('does not compile with another request, or none', () => {
    const asked = { resourceId: 'w', resourceName: 'north' };
    // @ts-expect-error the colour is missing
    expect(() => paint.asked({ ...asked, request: {} }, origin)).not.toThrow();
    // @ts-expect-error of another kind
    expect(() => strip.asked({ ...asked, request: { colour: 'red' } }, origin)).not.toThrow();
    // @ts-expect-error nobody defined it
    const negates = (): ReturnType<NonNullable<OperationTraits<object>['negates']>> => ['wall.pant'];
    expect(negates()).toHaveLength(1);
  });
});
