import { z } from 'zod';
import { id, time } from '#admin/contract/common';

export const password = z.string().min(1).max(256).meta({ format: 'password', description: 'Its password' });
export const code = z
  .string()
  .min(6)
  .max(40)
  .meta({ description: 'Six digits of the app, or a recovery code; each is good once', examples: ['123456'] });
export const passkey = z
  .object({
    id,
    name: z.string().meta({ description: 'As its owner called it' }),
    createdAt: time,
    lastUsedAt: time.nullable().meta({ description: 'null: never' }),
  })
  .meta({ id: 'Passkey' });
export type PasskeyReply = z.output<typeof passkey>;
