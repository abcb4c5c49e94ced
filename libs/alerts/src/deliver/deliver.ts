import { post } from '#alerts/deliver/post';
import { sendMail } from '#alerts/deliver/send-mail';
import { pagerdutyBody, slackBody, teamsBody, webhookBody } from '#alerts/messages/bodies';
import type { Message } from '#alerts/messages/content';
import { mailOf } from '#alerts/messages/mail';
import { signedHeaders } from '#alerts/messages/signature';
import { PAGERDUTY, type Target } from '#alerts/messages/target';
import type { OuterAddresses } from '#platform/config/outer-addresses';

/** Tells it to whoever is there. Rejects with NotTaken when it was not taken, or nobody knows whether it was. */
export async function deliver(outer: OuterAddresses, target: Target, message: Message): Promise<void> {
  switch (target.kind) {
    case 'webhook': {
      const body = JSON.stringify(webhookBody(message));
      return post(outer, target.url, body, signedHeaders(target.secret, message.id, Date.now(), body));
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
