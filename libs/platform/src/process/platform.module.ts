import { type DynamicModule, Global, Module } from '@nestjs/common';
import type { Config } from '#platform/config/config';
import { loadKeyring } from '#platform/crypto/kek';
import { SecretBox } from '#platform/crypto/secrets';
import { Database, idleWithin } from '#platform/database/database';
import { isStorageError } from '#platform/errors';
import { Health } from '#platform/health/health';
import type { ProcessContext } from '#platform/process/boot';
import { connectDatabase } from '#platform/process/connect-database';
import { key, provide } from '#platform/process/providers';
import { Shutdown } from '#platform/process/shutdown';
import { requireSchema } from '#platform/schema/schema-version';

/** Settings that neither gateway nor worker starts without. */
export const REQUIRED = [
  'TRIVET_DATABASE_URL',
  'TRIVET_DATABASE_ENGINE_URL',
  'TRIVET_REDIS_URL',
  'TRIVET_KEK_FILE',
] as const satisfies (keyof Config)[];

export type AppConfig = Config & { [K in (typeof REQUIRED)[number]]-?: NonNullable<Config[K]> };
export type AppContext = ProcessContext<AppConfig>;

export const CONTEXT = key<AppContext>('ProcessContext');
export const CONFIG = key<AppConfig>('Config');

async function openDatabase(context: AppContext): Promise<Database> {
  const { app, config, health, log, shutdown } = context;
  const database = await connectDatabase(
    {
      appUrl: config.TRIVET_DATABASE_URL,
      engineUrl: config.TRIVET_DATABASE_ENGINE_URL,
      poolSize: config.TRIVET_DATABASE_POOL,
      applicationName: `trivet:${app}`,
      idleMs: idleWithin(config.TRIVET_LEASE_MS),
    },
    context,
  );
  shutdown.add('database', () => database.close());
  let isTooOld = false;
  health.addCheck('database', async () => {
    await requireSchema(database).catch(error => {
      if (!isTooOld && isStorageError(error) && error.kind === 'failed_precondition') {
        isTooOld = true;
        log.error(error.message);
      }
      throw error;
    });
    return undefined;
  });
  return database;
}

/** What everything in gateway and worker stands on. Who needs the database is made after it, and so stops before it. */
@Global()
@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: the form of a Nest module with options
export class PlatformModule {
  static of(context: AppContext): DynamicModule {
    return {
      module: PlatformModule,
      providers: [
        { provide: CONTEXT, useValue: context },
        { provide: CONFIG, useValue: context.config },
        { provide: Health, useValue: context.health },
        { provide: Shutdown, useValue: context.shutdown },
        provide(SecretBox, [CONFIG], config => new SecretBox(loadKeyring(config.TRIVET_KEK_FILE))),
        provide(Database, [CONTEXT], openDatabase),
      ],
      exports: [CONTEXT, CONFIG, Health, Shutdown, SecretBox, Database],
    };
  }
}
