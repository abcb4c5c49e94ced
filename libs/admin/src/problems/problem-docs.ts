import { inline } from '#admin/problems/html-text';
import { PROBLEMS, type ProblemCode } from '#admin/problems/problems';

interface ProblemDoc {
  means: string;
  todo: string;
}

/** What each code means and what to do: docs/problems.md, and the page that `type` of a problem leads to. */
export const PROBLEM_DOCS: Readonly<Record<ProblemCode, ProblemDoc>> = {
  invalid_argument: {
    means:
      'Something that was sent has the wrong form: `errors` names each field by its JSON pointer. Nothing has happened.',
    todo: 'Correct the fields; /api/v1/openapi.json says what each may be. A field that nobody knows is refused, too.',
  },
  unauthenticated: {
    means: 'There was no API token and no login, or they are expired, revoked, or their user is disabled or deleted.',
    todo: 'Log in again at the page. For a program, make a new token (`POST /api/v1/tenants/{tenant}/tokens`) and send it as `Authorization: Bearer …`.',
  },
  second_factor_required: {
    means:
      'The password was right, and its user has a second factor: there was no code, or one that is wrong or was used already.',
    todo: 'Send the same again with `code`: six digits of the authenticator app, or a recovery code. Who has lost both asks an administrator to reset them. A program needs no code: it has an API token.',
  },
  permission_denied: {
    means:
      'The caller is known and may not do this: its role is too low, it belongs to a tenant that is suspended, a call of the page lacked `x-csrf-token`, or the identity provider knows a person who is no user here.',
    todo: 'Ask an administrator of your tenant for the role that `detail` names; for a suspended tenant, and for a person who is no user, whoever runs the appliance.',
  },
  not_found: {
    means:
      'There is nothing of this name or id, or nothing that the caller may see: objects of other tenants are not there either.',
    todo: 'Look it up in the list. It may have been deleted: the audit log says by whom.',
  },
  method_not_allowed: {
    means: 'The path exists and does not take this method; the header Allow names those that it takes.',
    todo: 'Use one of them; /api/v1/openapi.json has all paths.',
  },
  already_exists: {
    means: 'An object of this name exists already, and is another one than the call asks for.',
    todo: 'Take another name, or look at the object that is there. To repeat a call safely, send an Idempotency-Key.',
  },
  failed_precondition: {
    means: 'The state of the object forbids it: it is in use, not empty, not ready, or the last of its kind.',
    todo: '`detail` says what stands in the way: remove that first. Repeating the same call alone does not help.',
  },
  aborted: {
    means:
      'Another operation on the same object is under way, or the object was changed at the same moment. Nothing has happened.',
    todo: 'Repeat the call after `Retry-After` seconds. `operation` is the one that is under way, where it is known.',
  },
  idempotency_key_reused: {
    means: 'The same user has sent this Idempotency-Key with another request within the last day.',
    todo: 'Take a new key for each request, and the same one only to repeat a request unchanged.',
  },
  precondition_failed: {
    means: 'If-Match names a version that is no longer the current one: somebody changed the object after it was read.',
    todo: 'Read it again, see what has changed, and send the change with the new ETag.',
  },
  request_timeout: {
    means: 'The connection was open, but the rest of the request did not come.',
    todo: 'Send the request at once; look at the network between.',
  },
  payload_too_large: {
    means: 'The body is larger than any call needs.',
    todo: 'Send less at once.',
  },
  unsupported_media_type: {
    means: 'The body is not JSON, or its content type does not say so.',
    todo: 'Send JSON with `Content-Type: application/json`.',
  },
  out_of_range: {
    means: 'A number is outside what the object or its backend can have.',
    todo: '`detail` says what is possible.',
  },
  precondition_required: {
    means: 'This call changes something that others may change, too, and lacked If-Match.',
    todo: 'Read the object, and send its ETag as If-Match.',
  },
  too_many_logins: {
    means:
      'Too many wrong passwords for this account, or from this address. Each further one makes the wait longer; other accounts are not affected.',
    todo: 'Wait for `Retry-After` seconds. If it was not you, somebody is guessing: the audit log has the addresses (`session.refused`).',
  },
  too_many_streams: {
    means: 'This user has as many event streams open as one may have.',
    todo: 'Close those that nobody reads; one stream tells everything, and filters can be applied to what it tells.',
  },
  headers_too_large: {
    means: 'Address and headers of the request together are longer than any call needs.',
    todo: 'Send fewer filters, or shorter ones; take a cursor as it was given.',
  },
  resource_exhausted: {
    means: 'A quota of the tenant is used up, or the pool or store has no room. Nothing was made.',
    todo: 'Delete what is no longer needed (the recycle bin gives way to new volumes by itself), or have the quota raised: `GET /api/v1/tenants/{tenant}/quotas` shows both sides.',
  },
  internal: {
    means: 'A defect of Trivet.',
    todo: 'Repeat the call once. If it fails again, quote `instance` to whoever runs the appliance: the log has the cause under it.',
  },
  unimplemented: {
    means: 'The backend of this object cannot do it.',
    todo: 'The capabilities of the backend say what it can; use another backend for this.',
  },
  unavailable: {
    means:
      'A part that is needed cannot be reached right now: the database, the backend, or the identity provider. What was accepted before goes on by itself.',
    todo: 'Repeat the call after `Retry-After` seconds. The overview, and `trivet doctor` on the appliance, say what is down.',
  },
  timeout: {
    means: 'There was no answer in time. It may have happened all the same.',
    todo: 'Look at the object, or repeat the call: with the same Idempotency-Key it is not carried out twice.',
  },
};

const INTRODUCTION = `Every refusal of the admin API is a problem (RFC 9457): \`detail\` says what happened to which object, \`code\` is one of these,
\`retryable\` whether the same call may succeed later, \`operation\` which operation it is about, \`errors\` which fields are wrong.
Quote \`instance\` when you ask for help.`;

const sections = Object.entries(PROBLEM_DOCS) as [ProblemCode, ProblemDoc][];

export const problemsMarkdown = (): string =>
  `# Problems\n\n${INTRODUCTION}\n${sections
    .map(([code, { means, todo }]) => {
      const { status, title } = PROBLEMS[code];
      return `\n## ${code}\n\n${status}: ${title}\n\n**What it means.** ${means}\n\n**What to do.** ${todo}\n`;
    })
    .join('')}`;

/** The same for a browser; no style, so that it needs no exception from any policy. */
export const problemsHtml = (): string => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Problems - Trivet</title></head>
<body>
<h1>Problems</h1>
<p>${inline(INTRODUCTION)}</p>
${sections
  .map(([code, { means, todo }]) => {
    const { status, title } = PROBLEMS[code];
    return `<h2 id="${code}">${code}</h2>
<p>${status}: ${inline(title)}</p>
<p><strong>What it means.</strong> ${inline(means)}</p>
<p><strong>What to do.</strong> ${inline(todo)}</p>`;
  })
  .join('\n')}
</body>
</html>
`;
