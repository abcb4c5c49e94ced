const KNOWN: readonly [RegExp, string][] = [
  [/no space left|disk is full|ENOSPC/i, 'make room on its disk'],
  [/permission denied|operation not permitted|EACCES|EPERM/i, 'let the user that runs up read and write what it names'],
  [/cannot allocate memory|out of memory|ENOMEM|ended by SIGKILL/i, 'it lacked memory: 2 GiB are needed with a Ceph'],
  [/port \d+ is taken|address already in use|EADDRINUSE/i, 'end who has the port'],
  [/not ready after/i, 'the machine may be too slow or too busy'],
  [/command not found|is not installed|no such file or directory/i, 'install or restore what it names'],
];

/** What to do about a part that did not start; for what nobody foresaw, the way to try again. */
export function remedyOf(reason: string): string {
  const todo = KNOWN.find(([pattern]) => pattern.test(reason))?.[1] ?? 'mend what it says';
  return `${todo}, then ./trivet down and ./trivet up`;
}
