import { z } from 'zod';
import { ofTenant, reason, tenantName } from '#admin/contract/common';
import { route } from '#admin/contract/route';

export const FIRST_RUN_STEPS = ['tenant', 'backend', 'test', 'driver', 'first'] as const;
export const DRIVER_MANIFESTS = ['hpe-csi', 'hpe-csi-inside', 'cosi-connector', 'cosi-classes'] as const;

const step = z
  .object({
    key: z.enum(FIRST_RUN_STEPS).meta({ description: 'Stable; for programs' }),
    title: z.string().meta({ description: 'What the step brings about' }),
    done: z.boolean().meta({ description: 'Read from what is there; nobody ticks it off' }),
    found: z.string().meta({ description: 'What is there, for people', examples: ['local (reflink)'] }),
    todo: z.string().meta({ description: 'What to do while it is open' }),
    link: z.string().meta({ description: 'Path of the dashboard where that is done' }),
    command: z.string().meta({ description: 'The same by the command line' }),
  })
  .meta({ id: 'FirstRunStep' });

const manifest = z
  .object({
    name: z.enum(DRIVER_MANIFESTS).meta({
      description:
        'hpe-csi: volumes, for a driver outside of the cluster of the gateways. hpe-csi-inside: for one in the same cluster. cosi-connector: buckets, values of the Helm chart for a cluster elsewhere. cosi-classes: classes and a claim of a bucket',
    }),
    title: z.string().meta({ description: 'What it is for' }),
    apply: z.string().meta({ description: 'The command that takes it' }),
    yaml: z.string().meta({
      description: 'With the values of this appliance; secrets and what it cannot know are in angle brackets',
    }),
    open: z
      .array(z.string())
      .meta({ description: 'What is still in angle brackets, and where it comes from; empty: nothing' }),
  })
  .meta({ id: 'DriverManifest' });

export const firstRun = z
  .object({
    tenant: tenantName,
    done: z.boolean().meta({ description: 'No step is open' }),
    dismissed: z.boolean().meta({ description: 'An administrator does not want to be shown it any more' }),
    steps: z.array(step).meta({ description: 'In the order in which they are taken' }),
    manifests: z.array(manifest).meta({ description: 'What drivers and sidecars in clusters read' }),
  })
  .meta({ id: 'FirstRun' });
export type FirstRunReply = z.output<typeof firstRun>;

export const firstRunRoutes = {
  get: route({
    id: 'getFirstRun',
    method: 'GET',
    path: '/tenants/{tenant}/first-run',
    tag: 'tenants',
    summary: 'What is done, and what is open, between a new tenant and its first volume or bucket',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofTenant,
    status: 200,
    reply: firstRun,
    examples: [{ name: 'of a tenant', params: { tenant: '{tenant}' } }],
  }),
  dismiss: route({
    id: 'dismissFirstRun',
    method: 'POST',
    path: '/tenants/{tenant}/first-run/dismiss',
    tag: 'tenants',
    summary: 'Show the checklist to nobody of this tenant any more',
    description:
      'An entry of the audit log: it is shown again when the log has forgotten that (TRIVET_AUDIT_LOG_DAYS) and steps are open.',
    access: { scope: 'tenant', role: 'admin' },
    params: ofTenant,
    body: z.strictObject({ reason: reason.optional() }),
    status: 200,
    reply: firstRun,
    examples: [{ name: 'it is known', params: { tenant: '{tenant}' }, body: { reason: 'we use buckets by hand' } }],
  }),
};
