/** What a code of a problem means and what to do; docs/problems.md says more. A test compares it with the codes there are. */
export const ADVICE: Readonly<Record<string, { means: string; todo: string }>> = {
  invalid_argument: { means: 'what was sent is wrong', todo: 'correct it; --help says what is expected' },
  unauthenticated: {
    means: 'the token or the password is not accepted',
    todo: 'was it revoked, has it expired? `trivet token create NAME --login USER` makes another one',
  },
  permission_denied: {
    means: 'who asks may not do this',
    todo: 'ask an administrator, or use a token with a higher role',
  },
  not_found: { means: 'there is no such object, or not for you', todo: 'look at the list; is it of another --tenant?' },
  method_not_allowed: { means: 'this release of the server has no such call', todo: 'update the older one of the two' },
  already_exists: { means: 'there is one of that name', todo: 'choose another name, or use the one there is' },
  failed_precondition: { means: 'its state forbids it', todo: 'change what the message names, then repeat' },
  idempotency_key_reused: { means: 'the key of this call belongs to another one', todo: 'update this program' },
  aborted: { means: 'another operation is under way', todo: 'wait for it: `trivet operations watch`; then repeat' },
  precondition_failed: { means: 'somebody changed it meanwhile', todo: 'look at it again, then repeat' },
  precondition_required: { means: 'the call did not say what it had read', todo: 'update this program' },
  request_timeout: {
    means: 'the rest of the request did not come',
    todo: 'look at the network between, and repeat it',
  },
  headers_too_large: { means: 'address and headers are too long', todo: 'give fewer or shorter filters' },
  payload_too_large: { means: 'more was sent than is taken', todo: 'send less' },
  unsupported_media_type: { means: 'what was sent is not JSON', todo: 'is there a proxy in between?' },
  out_of_range: { means: 'a number is outside of what is possible', todo: 'the message says what is' },
  too_many_logins: { means: 'too many wrong passwords', todo: 'wait as long as the message says' },
  too_many_streams: { means: 'as many streams of events are open as one may have', todo: 'end another watch' },
  resource_exhausted: {
    means: 'a quota or the capacity is used up',
    todo: '`trivet tenant quota NAME`, `trivet pool list`: raise it, or delete something',
  },
  internal: { means: 'a defect of Trivet', todo: 'report it with the id below; the log of the gateway has it too' },
  unimplemented: { means: 'the backend cannot do it', todo: 'use another backend' },
  unavailable: { means: 'not now', todo: 'repeat it later; `trivet doctor` says what is missing' },
  timeout: { means: 'no answer in time', todo: 'repeat it later; the work may go on: `trivet operations list`' },
};
