import type { Submitted } from '#operations/accepting/operations';

/** The same calls, which give what the domain answered without the operation that it took. */
export type Answers<Calls> = {
  [Name in keyof Calls]: Calls[Name] extends (...given: infer Given) => Promise<Submitted<infer Value>>
    ? (...given: Given) => Promise<Value>
    : Calls[Name];
};

export const answers = <Calls extends object>(calls: Calls): Answers<Calls> =>
  new Proxy(calls, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...given: unknown[]) => {
        const answer: unknown = member.apply(target, given);
        return answer instanceof Promise ? answer.then(withoutOperation) : answer;
      };
    },
  }) as Answers<Calls>;

const withoutOperation = (answer: unknown): unknown =>
  typeof answer === 'object' && answer !== null && 'value' in answer ? answer.value : answer;
