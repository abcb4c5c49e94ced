/** As much of a pino logger as is used for calls. */
export interface CallLogger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Why a call was no success. */
export interface Refused {
  reason: string;
  /** What the caller was given to quote: only then is the cause logged, since it is a defect. */
  errorId?: string;
  cause?: unknown;
  /** Something of ours or behind us fails; else it is between the caller and its request. */
  ours: boolean;
}

/** One line for each call that is over. `fields` hold nothing of a body, no token and no secret. */
export function logCall(
  logger: CallLogger,
  message: string,
  fields: object,
  { refused, quiet = false }: { refused?: Refused; quiet?: boolean } = {},
): void {
  if (!refused) {
    logger[quiet ? 'debug' : 'info'](fields, message);
    return;
  }
  const { reason, errorId, cause, ours } = refused;
  if (errorId) logger.error({ ...fields, reason, errorId, err: cause }, message);
  else logger[ours ? 'warn' : 'info']({ ...fields, reason }, message);
}
