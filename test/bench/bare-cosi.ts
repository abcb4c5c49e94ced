/**
 * The ceiling for repeated calls: bare grpc-js with the same messages on a UNIX socket, one prepared SELECT on a pool of
 * the same size, and nothing else. Started as a process of its own, as the gateway is.
 */
import { Server, ServerCredentials, type ServiceDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import pg from 'pg';

const [, , socketPath, databaseUrl, protoPath, poolSize] = process.argv as string[];
const pool = new pg.Pool({ connectionString: databaseUrl!, max: Number(poolSize) });
const definitions = loadSync(protoPath!, { defaults: true, oneofs: true });
const server = new Server();
server.addService(definitions['sigs.k8s.io.cosi.v1alpha2.Provisioner'] as ServiceDefinition, {
  DriverCreateBucket: (call: { request: { name: string } }, done: (error: Error | null, reply?: object) => void) => {
    pool
      .query({ name: 'find', text: 'SELECT name FROM bench_bucket WHERE name = $1', values: [call.request.name] })
      .then(({ rows }) =>
        done(null, {
          bucketId: rows[0].name,
          protocols: {
            s3: {
              bucketId: rows[0].name,
              endpoint: 'http://fake.invalid',
              region: 'default',
              addressingStyle: { style: 1 },
            },
          },
        }),
      )
      .catch(done);
  },
});
server.bindAsync(`unix:${socketPath}`, ServerCredentials.createInsecure(), error => {
  if (error) throw error;
  process.stdout.write('ready\n');
});
