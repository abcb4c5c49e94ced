/** What one check found. ok says what it saw; the others say what to do. */
export interface Finding {
  name: string;
  level: 'ok' | 'warn' | 'fail';
  detail: string;
  remedy?: string;
}

/** For people, as a line of its own. */
export const inLine = ({ level, name, detail, remedy }: Finding): string =>
  `${level.padEnd(4)}  ${name}: ${detail}${remedy === undefined ? '' : `; ${remedy}`}`;

export const ok = (name: string, detail: string): Finding => ({ name, level: 'ok', detail });
export const warn = (name: string, detail: string, remedy: string): Finding => ({
  name,
  level: 'warn',
  detail,
  remedy,
});
export const fail = (name: string, detail: string, remedy: string): Finding => ({
  name,
  level: 'fail',
  detail,
  remedy,
});

/** All of them, whatever becomes of one. */
export async function each(checks: readonly Promise<Finding[]>[]): Promise<Finding[]> {
  const settled = await Promise.allSettled(checks);
  return settled.flatMap(result => {
    if (result.status === 'fulfilled') return result.value;
    const said = (result.reason as Error).message.split('\n')[0]!;
    return [fail('doctor', `a look ended early: ${said}`, 'what else is said here holds; report it as a defect')];
  });
}

/** A check that throws has found something, too. */
export async function findings(name: string, remedy: string, check: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await check();
  } catch (error) {
    const said = (error as Error).message || String((error as { code?: string }).code ?? error);
    return [fail(name, said.split('\n')[0]!, remedy)];
  }
}
