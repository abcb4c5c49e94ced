/** What is sent to each kind of receiver over HTTP. */
import { addressIn, type Content, cut, detailsOf, type Message, titleOf } from '#alerts/messages/content';

/** Trivet's own form; docs/alerts.md has it for whoever writes a receiver. */
export function webhookBody({ id, content, source, ...message }: Message): object {
  const { event, alert, ...rest } = content;
  return {
    id,
    event,
    source,
    alert: { id: alert, ...rest, link: addressIn({ id, content, source, ...message }) },
  };
}

/** Of its limits a header has 150 characters, a text 3,000: https://docs.slack.dev/reference/block-kit/blocks */
const SLACK = { header: 150, text: 3_000 };

/** All texts of ours are `plain_text`, which Slack reads no mark-up in; `text` is for notifications, and escaped. */
export function slackBody(message: Message): object {
  const { content, source } = message;
  const address = addressIn(message);
  const plain = (text: string, most = SLACK.text) => ({ type: 'plain_text', text: cut(text, most), emoji: false });
  const title = titleOf(content);
  return {
    text: cut(slackEscaped(`${markOf(content)} ${title}`), SLACK.text),
    blocks: [
      { type: 'header', text: plain(`${markOf(content)} ${title}`, SLACK.header) },
      ...(title.length > SLACK.header - 10 ? [{ type: 'section', text: plain(title) }] : []),
      ...detailsOf(content).map(([name, text]) => ({ type: 'section', text: plain(`${name}: ${text}`) })),
      {
        type: 'context',
        elements: [
          plain(`${content.rule} · ${source}`),
          ...(address === null ? [] : [{ type: 'mrkdwn', text: `<${slackEscaped(address)}|Open in Trivet>` }]),
        ],
      },
    ],
  };
}

const slackEscaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('|', '%7C');

/**
 * A message with an Adaptive Card, as the Teams workflow "Post to a channel when a webhook request is received" takes it:
 * https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using. Runs of text have no mark-up.
 */
export function teamsBody(message: Message): object {
  const { content, source } = message;
  const address = addressIn(message);
  const text = (run: object) => ({ type: 'RichTextBlock', inlines: [{ type: 'TextRun', ...run }] });
  const color = content.event === 'ended' ? 'Good' : content.severity === 'error' ? 'Attention' : 'Warning';
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body: [
            text({ text: cut(titleOf(content), 1_000), weight: 'Bolder', size: 'Medium', color }),
            ...detailsOf(content).map(([name, detail]) => text({ text: `${name}: ${cut(detail, 3_000)}` })),
            text({ text: `${content.rule} · ${source}`, isSubtle: true, size: 'Small' }),
          ],
          actions: address === null ? [] : [{ type: 'Action.OpenUrl', title: 'Open in Trivet', url: address }],
        },
      },
    ],
  };
}

/** Of its limits a summary has 1,024 characters: https://developer.pagerduty.com/docs/events-api-v2/trigger-events/ */
const PAGERDUTY_SUMMARY = 1_024;

export function pagerdutyBody(message: Message, routingKey: string): object {
  const { content, source } = message;
  const address = addressIn(message);
  const { event, alert, rule, object, severity, means, todo, at, by, note } = content;
  const action = event === 'acknowledged' ? 'acknowledge' : event === 'ended' ? 'resolve' : 'trigger';
  return {
    routing_key: routingKey,
    event_action: action,
    dedup_key: alert,
    payload: {
      summary: cut(titleOf(content), PAGERDUTY_SUMMARY),
      source,
      severity: event === 'test' ? 'info' : severity === 'error' ? 'critical' : 'warning',
      timestamp: at,
      class: rule,
      component: cut(object || rule, 255),
      custom_details: { means, todo, by, note },
    },
    client: 'Trivet',
    ...(address === null ? {} : { client_url: address, links: [{ href: address, text: 'Open in Trivet' }] }),
  };
}

const markOf = ({ event, severity }: Content): string =>
  event === 'ended' ? '[ended]' : event === 'test' ? '[test]' : severity === 'error' ? '[error]' : '[warning]';
