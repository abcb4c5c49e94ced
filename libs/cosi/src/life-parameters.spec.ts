import { expect, it } from 'vitest';
import { rotationOf } from '#cosi/life-parameters';

it.each([
  [{}, undefined],
  [{ rotateAfter: '90d' }, { afterSeconds: 7_776_000, graceSeconds: 86_400 }],
  [
    { rotateAfter: '90d', rotateGrace: '7d' },
    { afterSeconds: 7_776_000, graceSeconds: 604_800 },
  ],
  [{ rotateAfter: '1h' }, { afterSeconds: 3_600, graceSeconds: 1_800 }],
  [
    { rotateAfter: '60m', rotateGrace: '30m' },
    { afterSeconds: 3_600, graceSeconds: 1_800 },
  ],
] as const)('reads %j', (parameters, rotation) => {
  expect(rotationOf(parameters)).toEqual(rotation);
});

it.each([
  [{ rotateGrace: '1h' }, 'parameters[rotateGrace]: must come with rotateAfter'],
  [{ rotateAfter: '59m' }, 'parameters[rotateAfter]: must be between 1h and 3660d'],
  [{ rotateAfter: '3661d' }, 'parameters[rotateAfter]: must be between 1h and 3660d'],
  [{ rotateAfter: '2h', rotateGrace: '61m' }, 'parameters[rotateGrace]: must not be more than half of rotateAfter'],
  ...['', '0d', '90', '1.5h', '90 d', '1w', '100000d', '-1d', '90D'].map(
    text => [{ rotateAfter: text }, 'parameters[rotateAfter]: must be a whole number'] as const,
  ),
] as const)('refuses %j', (parameters, message) => {
  expect(() => rotationOf(parameters as Record<string, string>)).toThrow(message);
});
