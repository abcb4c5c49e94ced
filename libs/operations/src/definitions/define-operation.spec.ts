import { describe, expect, it } from 'vitest';
import { defineOperation, handlersOf, type OperationTraits } from '#operations/definitions/define-operation';

const work = { steps: [], succeed: () => undefined };
const paint = defineOperation('wall.paint', {
  resourceKind: 'wall',
  class: 'fast',
  slots: (id, { colour }: { colour: string; coats?: number }) => [{ resource: id, slot: colour, own: true }],
  carriedOut: ({ brush }: { brush: string }) => ({ ...work, steps: [{ name: brush, run: async () => undefined }] }),
});
const strip = defineOperation('wall.strip', {
  resourceKind: 'wall',
  class: 'destroy',
  slots: id => [{ resource: id, slot: 'surface', own: true }],
  negates: ({ all }: { all: boolean }) => (all ? [paint] : []),
  carriedOut: (_: { scraper: number }) => work,
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

  it('is carried out over what it needs, under its own name', () => {
    const [painting, stripping] = handlersOf([paint, strip], { brush: 'broad', scraper: 1 });
    expect(painting).toMatchObject({ kind: 'wall.paint', steps: [{ name: 'broad' }] });
    expect(stripping).toMatchObject({ kind: 'wall.strip', steps: [] });
  });

  it('does not compile with another request, or none', () => {
    const asked = { resourceId: 'w', resourceName: 'north' };
    // @ts-expect-error the colour is missing
    expect(() => paint.asked({ ...asked, request: {} }, origin)).not.toThrow();
    // @ts-expect-error of another kind
    expect(() => strip.asked({ ...asked, request: { colour: 'red' } }, origin)).not.toThrow();
    // @ts-expect-error nobody defined it
    const negates = (): ReturnType<NonNullable<OperationTraits<object, unknown, unknown>['negates']>> => ['wall.pant'];
    expect(negates()).toHaveLength(1);
    // @ts-expect-error what the second of them needs is missing
    expect(() => handlersOf([paint, strip], { brush: 'broad' })).not.toThrow();
  });
});
