import { type Config, ConfigError, loadConfig } from '#platform/config/config';
import { type Finding, fail } from './check.js';

/** The settings, or what is wrong with them. */
export function configOf(env: Readonly<Record<string, string>>, required: (keyof Config)[] = []): Config | Finding[] {
  try {
    return loadConfig(required, env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message.split('\n').map(line => fail('settings', line, 'correct it (docs/settings.md)'));
  }
}
