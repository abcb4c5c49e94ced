import { describe, expect, it } from 'vitest';
import { key, provide, provideClass } from '#platform/process/providers';

class Clock {
  constructor(readonly zone = 'UTC') {}
}
class Bell {
  constructor(
    readonly clock: Clock,
    readonly name: string,
  ) {}
}
const NAME = key<string>('name of the bell');

describe('providers', () => {
  it('make a class of what its constructor takes, under its own token', () => {
    const { provide: token, inject, useFactory } = provideClass(Bell, Clock, NAME);
    expect([token, inject]).toEqual([Bell, [Clock, NAME]]);
    expect(useFactory(new Clock('CET'), 'big')).toEqual(new Bell(new Clock('CET'), 'big'));
  });

  it('do not compile with another token than the parameter has', () => {
    // @ts-expect-error the second parameter is a text
    provideClass(Bell, Clock, Clock);
    // @ts-expect-error it takes two
    provideClass(Bell, Clock);
    // @ts-expect-error the key is of a text
    provide(Clock, [key<number>('zone')], (zone: string) => new Clock(zone));
    // @ts-expect-error what is made is no clock
    provide(Clock, [NAME], zone => zone);
    expect(provide(Clock, [NAME], zone => new Clock(zone)).useFactory('CET')).toEqual(new Clock('CET'));
  });
});
