import type { CallLogger } from '#protocol/call-log';

export interface LoggedLine {
  level: keyof CallLogger;
  fields: Record<string, unknown>;
  message: string;
}

/** Keeps what a room says of its calls. */
export class LogMemory implements CallLogger {
  readonly lines: LoggedLine[] = [];
  debug = (fields: object, message: string) => this.keep('debug', fields, message);
  info = (fields: object, message: string) => this.keep('info', fields, message);
  warn = (fields: object, message: string) => this.keep('warn', fields, message);
  error = (fields: object, message: string) => this.keep('error', fields, message);

  /** As JSON, to look for text in. */
  get text(): string[] {
    return this.lines.map(line => JSON.stringify(line));
  }

  private keep(level: keyof CallLogger, fields: object, message: string): void {
    this.lines.push({ level, fields: { ...fields }, message });
  }
}
