import { inLine } from '../doctor/check.js';

export async function doctor({ json }: { json?: boolean }): Promise<void> {
  const { examine } = await import('../doctor/examine.js');
  const findings = await examine();
  const failed = findings.some(({ level }) => level === 'fail');
  if (json) process.stdout.write(`${JSON.stringify({ ok: !failed, findings }, null, 2)}\n`);
  else for (const finding of findings) process.stdout.write(`${inLine(finding)}\n`);
  process.exitCode = failed ? 1 : 0;
}
