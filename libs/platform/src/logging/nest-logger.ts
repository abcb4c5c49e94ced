import type { LoggerService } from '@nestjs/common';
import { createLogger, type Logger } from '#platform/logging/log';

/**
 * What Nest itself says, in our lines. Its progress at start is of interest to developers only, so `log` becomes debug;
 * our own code logs through createLogger.
 */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger = createLogger('nest')) {}

  log(message: unknown, ...rest: unknown[]): void {
    this.write('debug', message, rest);
  }

  debug(message: unknown, ...rest: unknown[]): void {
    this.write('debug', message, rest);
  }

  verbose(message: unknown, ...rest: unknown[]): void {
    this.write('trace', message, rest);
  }

  warn(message: unknown, ...rest: unknown[]): void {
    this.write('warn', message, rest);
  }

  error(message: unknown, ...rest: unknown[]): void {
    this.write('error', message, rest);
  }

  fatal(message: unknown, ...rest: unknown[]): void {
    this.write('fatal', message, rest);
  }

  /** Nest passes the context as the last string; an error's stack, when there is one, comes before it. */
  private write(level: 'trace' | 'debug' | 'warn' | 'error' | 'fatal', message: unknown, rest: unknown[]): void {
    const last = rest.at(-1);
    const context = typeof last === 'string' && !last.includes('\n') ? last : undefined;
    // Of a start that fails; it is thrown, too, and said once by whoever began the start.
    if (context === 'ExceptionHandler') return;
    const extra = (context === undefined ? rest : rest.slice(0, -1)).filter(value => value !== undefined);
    const stack = extra.find((value): value is string => typeof value === 'string' && value.includes('\n    at '));
    const err = [message, ...extra].find((value): value is Error => value instanceof Error);
    const details = extra.filter(value => value !== stack && value !== err);
    const fields = { context, err, stack, details: details.length > 0 ? details : undefined };
    if (typeof message === 'string') this.logger[level](fields, '%s', message);
    else if (err) this.logger[level](fields);
    else this.logger[level]({ ...fields, details: [message, ...details] }, 'message');
  }
}
