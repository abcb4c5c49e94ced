import type { Handler, Step } from '#operations/definitions/handler';

/** In the gateway, between the commit that accepts and the bell. */
export const ACCEPT_FAILPOINT = 'accept:committed';

/** Every place where a test may end a worker that runs this kind of operation: runner.ts and step-context.ts name them. */
export function failpointsOf(handler: Handler, traits: readonly string[] = []): string[] {
  const steps = (list: readonly Step[]) =>
    list.flatMap(step =>
      step.where !== undefined && !traits.includes(step.where)
        ? [`${step.name}:before`, `${step.name}:after`]
        : pointsOf(step),
    );
  const pointsOf = (step: Step) => [
    ...(step.point || step.portioned ? [`${step.name}:point`] : []),
    `${step.name}:before`,
    ...(step.calls ?? []).flatMap(method => [`${method}:call`, `${method}:answered`]),
    ...(step.portioned ? [`${step.name}:again`] : []),
    `${step.name}:after`,
  ];
  const names = [
    'claimed',
    ...(handler.begin ? ['begin:point'] : []),
    ...steps(handler.steps),
    ...(handler.fail ? ['undo:point'] : []),
    ...steps(handler.undo ?? []),
    ...(handler.steps.some(({ waits }) => waits) ? ['later:before', 'later:after'] : []),
    'retry:after',
    'end:before',
    'end:after',
  ];
  return [...new Set(names)].map(name => `${handler.kind}:${name}`);
}
