/** What tests give a process before it starts. It takes its own setting out of the environment: the process knows none such. */
import '#test/fakes/kinds';
import { armFailpoints } from '#test/failpoints/failpoints';

const { TRIVET_FAILPOINT: failpoints } = process.env;
delete process.env.TRIVET_FAILPOINT;
if (failpoints) armFailpoints(failpoints);
// A start costs a second of the processor: who runs already is ordered by its channel, and says that it has heard.
process.on('message', (spec: string) => {
  armFailpoints(spec);
  process.send?.(spec);
});
// It alone keeps no process alive.
process.channel?.unref();
