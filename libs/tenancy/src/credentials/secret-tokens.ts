import { createHash, randomBytes } from 'node:crypto';

/** Says what it is to whoever finds it, and to scanners of leaked secrets. */
const PREFIX = 'trivet_';
const TOKEN = /^trivet_[A-Za-z0-9_-]{43}$/;

/** 256 random bits. */
export const newToken = (): string => `${PREFIX}${randomBytes(32).toString('base64url')}`;
export const isToken = (text: string): boolean => TOKEN.test(text);
/** What is stored: of that many random bits a fast hash gives nothing away. */
export const hashOfToken = (token: string): Buffer => createHash('sha256').update(token).digest();
