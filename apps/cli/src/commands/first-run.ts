import { DRIVER_MANIFESTS, type FirstRunReply, firstRunRoutes } from '#admin/contract/first-run';
import { printable, sayJson, showOne } from '../api/output.js';
import { noun, oneOf } from '../command-line/command.js';
import { ofTenant } from './api-commands.js';
import { reason } from './options.js';

export const FIRST_RUN = noun('first-run', 'from a new tenant to its first volume or bucket', [
  ofTenant('show', 'what is done, what is open, and how it is done', '--tenant acme', {
    run: async ({ json }, api, tenant) => {
      const { reply } = await api.call(firstRunRoutes.get, { params: { tenant } });
      showOne(reply, json, () => describe(reply));
    },
  }),
  ofTenant('manifest', 'what a driver or sidecar reads, as YAML, without secrets', 'hpe-csi --tenant acme', {
    args: { name: oneOf(DRIVER_MANIFESTS, 'for volumes or buckets') },
    run: async ({ name, json }, api, tenant) => {
      const { reply } = await api.call(firstRunRoutes.get, { params: { tenant } });
      const found = reply.manifests.find(each => each.name === name)!;
      if (json) return sayJson(found);
      process.stdout.write(found.yaml);
      // Beside what is redirected into a file.
      for (const open of found.open) process.stderr.write(`trivet: fill in ${printable(open)}\n`);
    },
  }),
  ofTenant('dismiss', 'show the checklist of the page to nobody of the tenant any more', '--tenant acme', {
    options: { reason },
    run: async ({ reason: why, json }, api, tenant) => {
      const { reply } = await api.call(firstRunRoutes.dismiss, { params: { tenant }, body: { reason: why } });
      showOne(reply, json, () => 'the page shows it no more');
    },
  }),
]);

function describe({ tenant, done, steps, manifests }: FirstRunReply): string {
  const lines = steps.flatMap(step => [
    `[${step.done ? 'x' : ' '}] ${step.title}: ${step.found}`,
    ...(step.done ? [] : [`      ${step.todo}`, `      ${step.command}`]),
  ]);
  if (done) lines.push('', `nothing is open for ${tenant}`);
  lines.push(
    '',
    'for clusters:',
    ...manifests.map(({ name, title }) => `  trivet first-run manifest ${name.padEnd(15)}  ${title}`),
  );
  return lines.map(printable).join('\n');
}
