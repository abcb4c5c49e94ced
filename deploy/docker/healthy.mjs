// Health check of a container: node healthy.mjs URL. Exit code 0 on a 2xx answer, else 1 with what was answered.
const url = process.argv[2] ?? 'http://127.0.0.1:8740/readyz';
try {
  const answer = await fetch(url, { signal: AbortSignal.timeout(4_000) });
  if (!answer.ok) {
    process.stderr.write(`${answer.status} ${await answer.text()}`);
    process.exitCode = 1;
  }
} catch (error) {
  process.stderr.write(`${url}: ${error instanceof Error ? (error.cause?.code ?? error.message) : 'no answer'}\n`);
  process.exitCode = 1;
}
