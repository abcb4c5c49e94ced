import { createHash, randomBytes } from 'node:crypto';

/** 32 letters, so that each of them is five random bits; all are legal in names of Kubernetes, at either end too. */
const LETTERS = 'abcdefghijklmnopqrstuvwxyz234567';
const LENGTH = 52;
const FORM = new RegExp(`^[${LETTERS}]{${LENGTH}}$`);

/** 260 random bits. */
export const newSessionToken = (): string => Array.from(randomBytes(LENGTH), byte => LETTERS[byte & 31]).join('');

export const isSessionToken = (text: string): boolean => FORM.test(text);

/** All that is stored and compared: finding a row by it tells nothing by its time about the token. */
export const hashOfToken = (token: string): Buffer => createHash('sha256').update(token).digest();
