/** Undefined: it is none. The parser's message would quote what may be a secret. */
export function jsonIn<T>(text: string): T | undefined {
  try {
    return JSON.parse(text) as T;
  } catch {
    return undefined;
  }
}
