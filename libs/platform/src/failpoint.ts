import { ConfigError } from '#platform/config';

/**
 * Named places where a test may kill, stop, hang or fail a process. They exist only when TRIVET_FAILPOINTS=1, which the
 * production image refuses; otherwise a call is one comparison.
 *
 * TRIVET_FAILPOINT is `name=action[@n]`, several separated by `;`. With @n only the n-th hit acts, without it every
 * one. Actions: kill (SIGKILL at once), stop (SIGSTOP, goes on after SIGCONT), hang (for ever), error (throws), trace
 * (writes `failpoint name` to stderr). The name `*` stands for every place without a rule of its own.
 */
const ACTIONS = ['kill', 'stop', 'hang', 'error', 'trace'] as const;
type Action = (typeof ACTIONS)[number];

interface Rule {
  action: Action;
  hit: number | undefined;
  hits: number;
}

export class FailpointError extends Error {
  constructor(name: string) {
    super(`failpoint ${name}`);
    this.name = 'FailpointError';
  }
}

let rules: Map<string, Rule> | undefined;

function parseRule(text: string): [string, Rule] {
  const match = /^(\*|[\w.:/-]+)=(\w+)(?:@([1-9]\d*))?$/.exec(text);
  const action = ACTIONS.find(candidate => candidate === match?.[2]);
  if (!match || !action) {
    throw new ConfigError(`TRIVET_FAILPOINT: expected name=${ACTIONS.join('|')}[@n], got ${JSON.stringify(text)}`);
  }
  return [match[1]!, { action, hit: match[3] === undefined ? undefined : Number(match[3]), hits: 0 }];
}

/** Throws ConfigError on a spec that is malformed, or given while failpoints are off. */
export function configureFailpoints({ enabled, spec }: { enabled: boolean; spec?: string | undefined }): void {
  rules = undefined;
  if (spec === undefined) return;
  if (!enabled) throw new ConfigError('TRIVET_FAILPOINT: needs TRIVET_FAILPOINTS=1, which is for tests only');
  const parts = spec
    .split(';')
    .map(part => part.trim())
    .filter(part => part !== '');
  rules = new Map(parts.map(parseRule));
}

function act(name: string, action: Action): Promise<void> | undefined {
  switch (action) {
    case 'kill':
      process.kill(process.pid, 'SIGKILL');
      return undefined;
    case 'stop':
      process.kill(process.pid, 'SIGSTOP');
      return undefined;
    case 'hang':
      return new Promise<void>(() => {});
    case 'error':
      throw new FailpointError(name);
    case 'trace':
      process.stderr.write(`failpoint ${name}\n`);
      return undefined;
  }
}

/** Await it. Without configuration it is free of cost and effect. */
export function failpoint(name: string): Promise<void> | undefined {
  if (rules === undefined) return undefined;
  const rule = rules.get(name) ?? rules.get('*');
  if (!rule) return undefined;
  rule.hits++;
  if (rule.hit !== undefined && rule.hit !== rule.hits) return undefined;
  return act(name, rule.action);
}
