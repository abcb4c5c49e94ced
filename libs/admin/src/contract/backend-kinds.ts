import { z } from 'zod';
import { KIND_FORMS } from '#backends/kind-forms';

/** The kinds of backend as the document has them: what their adapters parse, each under a name of its own. */
const KINDS = Object.entries(KIND_FORMS).map(([kind, { config, credentials }]) => {
  const title = `${kind[0]!.toUpperCase()}${kind.slice(1)}`;
  return {
    kind,
    config: config.meta({ ...config.meta(), id: `${title}Config` }),
    credentials: credentials.meta({
      description: 'None are needed',
      ...credentials.meta(),
      id: `${title}Credentials`,
      writeOnly: true,
    }),
  };
});

/** Of registering one: a form for each kind, with what all of them have. */
export const registrationsOfKinds = (all: z.ZodRawShape) =>
  KINDS.map(({ kind, config, credentials }) =>
    z.strictObject({
      ...all,
      kind: z.literal(kind).meta({ description: 'What it is' }),
      config,
      // A kind that needs none may be registered without.
      credentials: credentials.safeParse({}).success ? credentials.optional() : credentials,
    }),
  );

export const formsOfKinds = z.union(KINDS.map(({ config }) => config)).meta({ description: 'Of its kind, as a whole' });
export const credentialsOfKinds = z.union(KINDS.map(({ credentials }) => credentials));

type Sent = { kind: string; config: unknown; credentials: unknown } | { share: string };

/** Every wrong field at once, each by its place. */
export function fitsItsKind(sent: Sent, context: z.RefinementCtx): void {
  const forms = 'kind' in sent ? KINDS.find(({ kind }) => kind === sent.kind) : undefined;
  if (!forms) return;
  for (const part of ['config', 'credentials'] as const) {
    const { error } = forms[part].safeParse((sent as Record<typeof part, unknown>)[part]);
    for (const issue of error?.issues ?? [])
      context.addIssue({ ...issue, path: [part, ...issue.path] } as Parameters<typeof context.addIssue>[0]);
  }
}
