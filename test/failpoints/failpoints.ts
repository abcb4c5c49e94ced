import { hookFailpoints } from '#platform/process/failpoint';

/**
 * What a test orders at the named places of a process is `name=action[@n]`, several separated by `;`: a process that the
 * suites start gets it as TRIVET_FAILPOINT. With @n only the n-th hit acts, without it every one. Actions: kill (SIGKILL at
 * once), stop (SIGSTOP, goes on after SIGCONT), hang (for ever), error (throws), trace (writes `failpoint name` to stderr).
 * The name `*` stands for every place without a rule of its own.
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

function parseRule(text: string): [string, Rule] {
  const match = /^(\*|[\w.:/-]+)=(\w+)(?:@([1-9]\d*))?$/.exec(text);
  const action = ACTIONS.find(candidate => candidate === match?.[2]);
  if (!match || !action) {
    throw new Error(`failpoint: expected name=${ACTIONS.join('|')}[@n], got ${JSON.stringify(text)}`);
  }
  return [match[1]!, { action, hit: match[3] === undefined ? undefined : Number(match[3]), hits: 0 }];
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

/** Orders all of `spec` in this process, and nothing else any more. Throws on one that is malformed. */
export function armFailpoints(spec: string): void {
  hookFailpoints();
  const parts = spec
    .split(';')
    .map(part => part.trim())
    .filter(part => part !== '');
  const rules = new Map(parts.map(parseRule));
  hookFailpoints(name => {
    const rule = rules.get(name) ?? rules.get('*');
    if (!rule) return undefined;
    rule.hits++;
    if (rule.hit !== undefined && rule.hit !== rule.hits) return undefined;
    return act(name, rule.action);
  });
}

/** Nothing happens at any place of this process. */
export const disarmFailpoints = (): void => hookFailpoints();
