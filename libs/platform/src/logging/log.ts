import { AsyncLocalStorage } from 'node:async_hooks';
import { type DestinationStream, type Logger as PinoLogger, pino, stdTimeFunctions } from 'pino';
import { openStdout } from '#platform/logging/log-stdout';
import { redact, redactText } from '#platform/logging/redact';

/**
 * One JSON object a line on stdout. Levels say who has to act:
 *  - fatal  the process stops because of it
 *  - error  a person must act, or data or service is at stake; a healthy appliance writes none
 *  - warn   something failed that is being repeated or worked around by itself
 *  - info   what an operator follows: start, stop, calls, operations ending
 *  - debug  what a developer follows
 * Every line passes redaction; no caller needs to remember it.
 */
export type Logger = PinoLogger;
export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace';

/** Fields that every line written inside `withLogContext` carries. */
export interface LogContext {
  operationId?: string;
  tenantId?: string;
  [field: string]: string | number | boolean | undefined;
}

const contexts = new AsyncLocalStorage<LogContext>();

/** Adds fields to all lines that `fn` and what it starts will write. Nested contexts add up. */
export function withLogContext<T>(fields: LogContext, fn: () => T): T {
  return contexts.run({ ...contexts.getStore(), ...fields }, fn);
}

export const logContext = (): Readonly<LogContext> | undefined => contexts.getStore();

/** Arguments of a log method, made safe: fields are left to the formatter below, every text is searched. */
function safeArguments(args: readonly unknown[]): unknown[] {
  const [first, ...rest] = args;
  const fields = first instanceof Error ? { err: first } : first;
  const texts = rest.map(value => (typeof value === 'string' ? redactText(value) : redact(value)));
  if (typeof fields === 'string') return [redactText(fields), ...texts];
  // Without a message pino would take the error's own, as it is.
  const error = typeof fields === 'object' && fields !== null ? (fields as { err?: unknown }).err : undefined;
  if (texts.length === 0 && error instanceof Error) return [fields, redactText(error.message)];
  return [fields, ...texts];
}

export function buildRootLogger(stream: DestinationStream): Logger {
  const asIs = <T>(value: T): T => value;
  const logger = pino(
    {
      base: { pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      serializers: { err: asIs }, // redaction has made it plain already
      errorKey: 'err',
      mixin: () => ({ ...contexts.getStore() }),
      formatters: {
        level: label => ({ level: label }),
        log: fields => redact(fields) as Record<string, unknown>,
      },
      hooks: {
        logMethod(args, method) {
          Reflect.apply(method, this, safeArguments(args));
        },
      },
    },
    stream,
  );
  // pino does not pass the bindings of a child through its formatters.
  const { child, setBindings } = logger;
  logger.child = function (this: Logger, bindings, options) {
    return Reflect.apply(child, this, [redact(bindings), options]);
  } as typeof child;
  logger.setBindings = function (this: Logger, bindings) {
    Reflect.apply(setBindings, this, [redact(bindings)]);
  };
  return logger;
}

let root: Logger | undefined;
let level: LogLevel = 'info';
const named = new Map<string, Logger>();

/** Sets the level of every logger there is and will be. */
export function configureLogging(options: { level: LogLevel }): void {
  level = options.level;
  for (const logger of named.values()) logger.level = level;
}

/** One logger a subject, e.g. `reconciler`; made when its module loads, so configuration may come later. */
export function createLogger(name: string): Logger {
  let logger = named.get(name);
  if (!logger) {
    root ??= buildRootLogger(openStdout());
    logger = root.child({ name }, { level });
    named.set(name, logger);
  }
  return logger;
}
