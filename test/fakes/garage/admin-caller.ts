/** Asks the admin API as an administrator does, past Trivet. */
interface Place {
  adminEndpoint: string;
  adminToken: string;
}

// biome-ignore lint/suspicious/noExplicitAny: as the API answers it
type Answer = any;

export class AdminCaller {
  constructor(private readonly place: Place) {}

  get(operation: string, query: Record<string, string> = {}): Promise<Answer> {
    return this.call('GET', operation, query);
  }

  post(operation: string, body: object, query: Record<string, string> = {}): Promise<Answer> {
    return this.call('POST', operation, query, JSON.stringify(body));
  }

  /** Undefined: there is none. */
  async find(operation: string, query: Record<string, string>): Promise<Answer> {
    return this.get(operation, query).catch((error: Error) => {
      if (error.message.startsWith('404 ')) return undefined;
      throw error;
    });
  }

  private async call(method: string, operation: string, query: Record<string, string>, body?: string): Promise<Answer> {
    const { adminEndpoint, adminToken } = this.place;
    const url = `${adminEndpoint}/v2/${operation}?${new URLSearchParams(query)}`;
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
    const answer = await fetch(url, { method, headers, ...(body === undefined ? {} : { body }) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${answer.status} ${operation}: ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  }
}
