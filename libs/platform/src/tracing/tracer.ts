export interface SpanOptions {
  kind: 'server' | 'client' | 'producer' | 'consumer';
  attributes?: Readonly<Record<string, string | number | undefined>>;
  /** A traceparent. Without it the span belongs to the active one; without one of those it begins a trace. */
  parent?: string | null;
  /** Traceparents of spans that it goes back to. */
  links?: readonly string[];
}

export interface OpenSpan {
  /** For headers, and for the operation's row. */
  readonly traceparent: string;
  attribute(name: string, value: string | number): void;
  /** @param failed what went wrong, in one word of a closed set: never a message */
  end(failed?: string): void;
}

export interface Tracer {
  start(name: string, options: SpanOptions, active: OpenSpan | undefined): OpenSpan;
  /** Sends what is left. */
  stop(): Promise<void>;
}

export interface TracingSettings {
  sampler: string;
  samplerArgument: string | undefined;
  /** How long spans are collected before they are sent. */
  delayMs: number | undefined;
}
