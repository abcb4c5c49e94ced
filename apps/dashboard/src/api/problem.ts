import type { Problem } from '#admin/contract/common';

/** What the API or the way to it says instead of an answer. */
export class ApiProblem extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }

  get code(): string {
    return this.problem.code;
  }
}

interface Advice {
  means: string;
  todo: string;
}

/** In the words of a person before the page; the detail of the problem says which object it was. */
const ADVICE: Readonly<Record<string, Advice>> = {
  invalid_argument: {
    means: 'Nothing was changed: a field has a value that it may not have.',
    todo: 'Correct the fields that are named below and send it again.',
  },
  out_of_range: { means: 'Nothing was changed: a value is outside its bounds.', todo: 'Choose a value within them.' },
  unauthenticated: { means: 'Your login has ended.', todo: 'Log in again; what the address bar shows is kept.' },
  second_factor_required: {
    means: 'The password was right; the code is missing, wrong, or was used already.',
    todo: 'Type the code that your app shows now, or a recovery code. Who has lost both asks an administrator.',
  },
  permission_denied: {
    means: 'Your role, or the state of your tenant, does not allow this.',
    todo: 'Ask an administrator to do it or to give you a higher role.',
  },
  not_found: {
    means: 'It was deleted meanwhile, or the address is wrong.',
    todo: 'Go back to the list and look there.',
  },
  method_not_allowed: { means: 'The page and the gateway are of different versions.', todo: 'Load this page anew.' },
  already_exists: { means: 'The name is taken; nothing was changed.', todo: 'Choose another name.' },
  failed_precondition: {
    means: 'The state it is in forbids this; nothing was changed.',
    todo: 'Do first what the message asks for.',
  },
  aborted: { means: 'Another operation has it at the moment.', todo: 'Wait for that operation, then try again.' },
  precondition_failed: {
    means: 'Somebody else changed it since you read it; your change was not made.',
    todo: 'Look at what is there now, and decide anew.',
  },
  precondition_required: { means: 'The page did not say which version it changes.', todo: 'Load this page anew.' },
  request_timeout: { means: 'Nothing was changed: the rest of the request did not come.', todo: 'Try it again.' },
  headers_too_large: { means: 'Nothing was changed: the address is too long.', todo: 'Give fewer or shorter filters.' },
  payload_too_large: { means: 'Nothing was changed: what was sent is too large.', todo: 'Send less at once.' },
  too_many_logins: {
    means: 'This account, from this address, is slowed down; others are not.',
    todo: 'Wait a little, then log in with the right password.',
  },
  too_many_streams: {
    means: 'As many pages of yours follow events as one may have open.',
    todo: 'Close another one; this page goes on by itself.',
  },
  unsupported_media_type: {
    means: 'Nothing was changed: something between the page and the gateway changed what was sent.',
    todo: 'Look at the proxy in between.',
  },
  idempotency_key_reused: {
    means: 'Nothing was changed: the key of this call was used for another one.',
    todo: 'Load this page anew, and do it again.',
  },
  resource_exhausted: {
    means: 'A quota of the tenant, or the space of the backend, is used up.',
    todo: 'Delete something, or ask for a higher quota.',
  },
  unimplemented: { means: 'The backend has no such ability.', todo: 'Use another backend for it.' },
  unavailable: { means: 'It cannot be done at this moment; nothing is lost.', todo: 'Try again in a few seconds.' },
  timeout: {
    means: 'No answer came in time; the work may still go on.',
    todo: 'Look at the operations before you repeat it.',
  },
  internal: {
    means: 'A defect of Trivet.',
    todo: 'Try once more; if it stays, give the id below to whoever runs the appliance.',
  },
  unreachable: {
    means: 'The gateway does not answer this page; the data path of hosts is not touched by that.',
    todo: 'Check the network and the gateway; the page goes on by itself when it is back.',
  },
};

const UNKNOWN: Advice = { means: 'The gateway refused it.', todo: 'Read the message, and quote the id when you ask.' };
export const adviceOf = (code: string): Advice => ADVICE[code] ?? UNKNOWN;

/** What a person typed and the page itself does not understand: said as the API says it. */
export class InputError extends ApiProblem {
  constructor(field: string, message: string) {
    super({
      ...local('invalid_argument', 'What was typed is not understood', message),
      errors: [{ pointer: `/body/${field}`, message }],
    });
  }
}

/** Of anything thrown: what is no answer of the API is said in the same form. */
export function problemOf(error: unknown): Problem {
  if (error instanceof ApiProblem) return error.problem;
  const detail = error instanceof Error ? error.message : String(error);
  return local('internal', 'The page failed', detail);
}

export const local = (code: string, title: string, detail: string, status = 0): Problem => ({
  type: `/docs/problems#${code}`,
  title,
  status,
  detail,
  instance: '',
  code,
  retryable: code === 'unreachable',
  operation: null,
});
