import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PartContext } from '../../apps/cli/src/parts/part.js';
import { packageOf } from '../../apps/cli/src/parts/postgres-major.js';
import type { Engine } from './engine.js';

const MAJOR = '17';
const IMAGE = `postgres:${MAJOR}-bookworm`;
/** With its data where images have them since 18. */
const DOCKERFILE = `FROM postgres:18.1-bookworm
RUN rm -r /usr/local/pgsql
COPY . /usr/local/pgsql
RUN printf "listen_addresses = '*'\\nunix_socket_directories = '/var/run/postgresql'\\n" >> /usr/local/pgsql/share/postgresql/postgresql.conf.sample
ENV PG_MAJOR=${MAJOR} PGDATA=/var/lib/postgresql/${MAJOR}/docker
`;

/**
 * Makes an image of the major version before, of the package that a home is taken over with.
 * @returns the settings of Compose by which postgres and roles are of it
 */
export async function postgresBefore(engine: Engine, folder: string): Promise<Record<string, string>> {
  const context = { install: true, say: () => {}, signal: new AbortController().signal, mark: {} };
  const programs = await packageOf(MAJOR, folder, context as unknown as PartContext);
  await engine.buildOf(IMAGE, DOCKERFILE, programs);
  const file = join(folder, 'postgres-before.yml');
  writeFileSync(file, JSON.stringify({ services: { postgres: { image: IMAGE }, roles: { image: IMAGE } } }));
  return { COMPOSE_FILE: `docker-compose.yml:${file}` };
}
