/** A worker in the middle of a cut, to be killed: its whole request comes as JSON in the first argument. */
import { ReflinkBackend } from '#backends/reflink/reflink-backend';
import { unleased } from '#platform/lease-signal';

const { pools, owner, cuts, pause } = JSON.parse(process.argv[2]!);
const backend = new ReflinkBackend(pools, owner);
await backend.stageTogether(cuts, pause, unleased(AbortSignal.timeout(60_000)));
