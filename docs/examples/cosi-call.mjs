// Calls one method of COSI v1alpha2 as a sidecar does, and prints the reply:
//   node docs/examples/cosi-call.mjs SOCKET METHOD [REQUEST as JSON]
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, credentials, status } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

const [socket, name, request = '{}'] = process.argv.slice(2);
const proto = fileURLToPath(new URL('../../proto/cosi/v1alpha2/cosi.proto', import.meta.url));
const definitions = loadSync(proto, { keepCase: true, enums: String });
const methods = {
  ...definitions['sigs.k8s.io.cosi.v1alpha2.Identity'],
  ...definitions['sigs.k8s.io.cosi.v1alpha2.Provisioner'],
};
const method = methods[name];
if (socket === undefined || method === undefined) {
  console.error(`usage: cosi-call.mjs SOCKET METHOD [JSON]; methods: ${Object.keys(methods).join(', ')}`);
  process.exit(2);
}

const client = new Client(`unix:${resolve(socket.replace(/^unix:\/\//, ''))}`, credentials.createInsecure());
client.makeUnaryRequest(
  method.path,
  method.requestSerialize,
  method.responseDeserialize,
  JSON.parse(request),
  { deadline: Date.now() + 60_000 },
  (error, reply) => {
    client.close();
    if (error) console.error(`${status[error.code]}: ${error.details}`);
    else console.log(JSON.stringify(reply, null, 2));
    process.exitCode = error ? 1 : 0;
  },
);
