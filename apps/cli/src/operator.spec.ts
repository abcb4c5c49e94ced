import { describe, expect, it } from 'vitest';
import { operatorSettings } from './operator.js';

const stored = {
  TRIVET_DATABASE_URL: 'postgresql://home',
  TRIVET_DATABASE_ENGINE_URL: 'postgresql://home-engine',
  TRIVET_REDIS_URL: 'redis://home',
  TRIVET_KEK_FILE: '/home/kek',
};

describe("an operator's settings", () => {
  it("are the home's where the environment says nothing", () => {
    expect(operatorSettings({ TRIVET_LOG_LEVEL: 'debug' }, stored)).toEqual({ ...stored, TRIVET_LOG_LEVEL: 'debug' });
  });

  it('never mix two databases', () => {
    for (const name of ['TRIVET_DATABASE_URL', 'TRIVET_DATABASE_URL_FILE', 'TRIVET_DATABASE_OWNER_URL']) {
      expect(operatorSettings({ [name]: 'own' }, stored)).toEqual({
        [name]: 'own',
        TRIVET_REDIS_URL: 'redis://home',
        TRIVET_KEK_FILE: '/home/kek',
      });
    }
  });

  it('do not give an address twice when the environment has it as a file', () => {
    expect(operatorSettings({ TRIVET_REDIS_URL_FILE: '/redis' }, stored)).not.toHaveProperty('TRIVET_REDIS_URL');
  });

  it('name what is missing', () => {
    expect(() => operatorSettings({ TRIVET_DATABASE_POOL: '3' }, {})).toThrow(
      'TRIVET_DATABASE_URL: required, and no appliance is running here',
    );
  });
});
