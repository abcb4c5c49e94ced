import { addressIn, cut, detailsOf, type Message, titleOf } from '#alerts/messages/content';

export interface Mail {
  /** One line, without control characters. */
  subject: string;
  text: string;
  /** The same at each try, so that a mailbox shows a repeat once. */
  messageId: string;
  /** Of all mails of an alert, so that they are one conversation. */
  thread: string;
  headers: Readonly<Record<string, string>>;
}

const SUBJECT = 180;

/** @param domain of the sender's address, in which ids are unique */
export function mailOf(message: Message, domain: string): Mail {
  const { id, content, source } = message;
  const address = addressIn(message);
  const { severity, event, rule, object, alert } = content;
  return {
    subject: cut(`[Trivet ${event === 'ended' ? 'ended' : severity}] ${titleOf(content)}`, SUBJECT),
    text: [
      content.what,
      '',
      ...detailsOf(content).map(([name, text]) => `${name}: ${text}`),
      '',
      ...(address === null ? [] : [address, '']),
      `Rule ${rule}${object ? `, ${object}` : ''}; said by ${source}.`,
      '',
    ].join('\n'),
    messageId: `<${id}@${domain}>`,
    thread: `<${alert}@${domain}>`,
    headers: { 'X-Trivet-Event': event, 'X-Trivet-Delivery': id, 'Auto-Submitted': 'auto-generated' },
  };
}
