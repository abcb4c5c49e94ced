/** A worker that makes an image, to be killed: its whole request comes as JSON in the first argument. */
import { ReflinkBackend } from '#backends/reflink/reflink-backend';
import { unleased } from '#platform/lease-signal';
import { armFailpoints } from '#test/failpoints/failpoints';

const { pools, owner, stage, source, image, readOnly, failpoint } = JSON.parse(process.argv[2]!);
if (failpoint) armFailpoints(failpoint);
const backend = new ReflinkBackend(pools, owner);
const signal = unleased(AbortSignal.timeout(60_000));
await backend.stage(stage, { kind: 'copy', source, thick: false }, signal);
await backend.commit(stage, image, { readOnly }, signal);
