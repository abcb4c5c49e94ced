/** Of gateway and worker: how people are told of alerts. */
import { isIP } from 'node:net';
import { z } from 'zod';

/** `10.1.0.0/16, fd12::/16`. */
export const networks = z
  .string()
  .transform((text, context) =>
    text.split(',').map(part => {
      const [, address = '', bits = ''] = /^\s*([0-9A-Fa-f.:]+)\/(\d{1,3})\s*$/.exec(part) ?? [];
      const family = isIP(address);
      if (family === 0 || Number(bits) > (family === 4 ? 32 : 128)) {
        context.addIssue('expected networks, as 10.1.0.0/16, with commas between them');
        return z.NEVER;
      }
      return { address, bits: Number(bits) };
    }),
  )
  .pipe(z.array(z.object({ address: z.string(), bits: z.number() })));

export const alertSettings = {
  /** Private networks that alerts may be sent to, beside public addresses: that of a mail server, mostly. */
  TRIVET_ALERT_NETWORKS: networks.optional(),
};
