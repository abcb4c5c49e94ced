import { post } from '#alerts/deliver/post';
import { sendMail } from '#alerts/deliver/send-mail';
import { withoutSecrets } from '#alerts/deliver/without-secrets';
import { pagerdutyBody, slackBody, teamsBody, webhookBody } from '#alerts/messages/bodies';
import type { Message } from '#alerts/messages/content';
import { mailOf } from '#alerts/messages/mail';
import { signedHeaders } from '#alerts/messages/signature';
import { PAGERDUTY, type Target } from '#alerts/messages/target';
import type { OuterAddresses } from '#platform/config/outer-addresses';

/**
 * Tells it to whoever is there. Rejects with NotTaken when it was not taken, or nobody knows whether it was.
 * @returns for people, who of several did not take it; undefined: all did
 */
export async function deliver(outer: OuterAddresses, target: Target, message: Message): Promise<string | undefined> {
  switch (target.kind) {
    case 'webhook': {
      const body = JSON.stringify(webhookBody(message));
      const headers = signedHeaders(target.secret, message.id, Date.now(), body);
      return post(outer, target.url, body, { headers, shown: text => withoutSecrets(text, target) });
    }
    case 'slack':
      return post(outer, target.url, JSON.stringify(slackBody(message)));
    case 'teams':
      return post(outer, target.url, JSON.stringify(teamsBody(message)));
    case 'pagerduty':
      return post(outer, PAGERDUTY[target.region], JSON.stringify(pagerdutyBody(message, target.routingKey)));
    case 'smtp':
      return sendMail(outer, target, mailOf(message, target.from.slice(target.from.lastIndexOf('@') + 1)));
  }
}
