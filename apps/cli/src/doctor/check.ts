/** What one check found. ok says what it saw; the others say what to do. */
export interface Finding {
  name: string;
  level: 'ok' | 'warn' | 'fail';
  detail: string;
  remedy?: string;
}

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

/** A check that throws has found something, too. */
export async function findings(name: string, remedy: string, check: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await check();
  } catch (error) {
    const said = (error as Error).message || String((error as { code?: string }).code ?? error);
    return [fail(name, said.split('\n')[0]!, remedy)];
  }
}
