/** What a caller got; the words of the code are the protocol's. */
export interface Answer {
  code: string;
  message: string;
}

/** What a caller does: the same call again while the answer says that it may help. Returns every answer. */
export async function persistWhile<A extends Answer>(
  passing: (answer: A) => boolean,
  call: () => Promise<A>,
  limitMs = 60_000,
): Promise<A[]> {
  const end = Date.now() + limitMs;
  const answers = [await call()];
  while (passing(answers.at(-1)!) && Date.now() < end) {
    await new Promise(resolve => setTimeout(resolve, 100));
    answers.push(await call());
  }
  return answers;
}
