// Prints the ranges of a snapshot that hold data, or that changed since a base, as backup software reads them:
//   node docs/examples/changed-blocks.mjs http://127.0.0.1:8740 USER PASSWORD-FILE SNAPSHOT [BASE]
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Client, credentials, status } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

const [url, username, passwordFile, snapshot, base] = process.argv.slice(2);
if (snapshot === undefined) {
  console.error('usage: changed-blocks.mjs URL USER PASSWORD-FILE SNAPSHOT [BASE]');
  process.exit(2);
}
const password = readFileSync(passwordFile, 'utf8').trim();
const post = async (path, body, token = '') => {
  const headers = { 'content-type': 'application/json', 'x-auth-token': token };
  const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
};

const login = await post('/containers/v1/tokens', { username, password, array_ip: '' });
const snapshots = base ? [base, snapshot] : [snapshot];
const session = await post('/cbt/v1/sessions', { snapshots }, login.session_token);
if (session.sessionState !== 'Ready') throw new Error(session.error ?? `the session is ${session.sessionState}`);

const proto = fileURLToPath(new URL('../../proto/snapshotmetadata/snapshot-metadata.proto', import.meta.url));
const service = loadSync(proto, { keepCase: true, longs: String })['snapshotmetadata.SnapshotMetadata'];
const method = base ? service.GetMetadataDelta : service.GetMetadataAllocated;
const request = { security_token: session.sessionToken, namespace: username.split('@')[1] ?? 'default' };
Object.assign(request, base ? { base_snapshot_id: base, target_snapshot_name: snapshot } : { snapshot_name: snapshot });
const client = new Client(session.sessionURL, credentials.createSsl(Buffer.from(session.caCert, 'base64')));
const call = client.makeServerStreamRequest(method.path, method.requestSerialize, method.responseDeserialize, request);
try {
  // The list is complete only when the stream ends well; after an error ask again with starting_offset.
  for await (const { block_metadata: ranges = [] } of call)
    for (const range of ranges) console.log(`${range.byte_offset ?? 0} ${range.size_bytes}`);
} catch (error) {
  console.error(`${status[error.code] ?? 'error'}: ${error.details ?? error.message}`);
  process.exitCode = 1;
}
client.close();
