/** What a test does at a named place. It may throw, wait, or end the process. */
export type FailpointHook = (name: string) => Promise<void> | undefined;

let hook: FailpointHook | undefined;

/** For entry points of tests alone. Without an argument nothing happens at any place again. */
export function hookFailpoints(wanted?: FailpointHook): void {
  hook = wanted;
}

/** A place where a test may kill, stop, hang or fail the process; await it. Nobody hooks it in production. */
export function failpoint(name: string): Promise<void> | undefined {
  return hook?.(name);
}
