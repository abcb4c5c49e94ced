import { ROUTES } from '#admin/contract/index';
import type { RouteContract } from '#admin/contract/route';
import type { Table } from '../command-line/command.js';
import { calledByPage } from './page-calls.js';
import { commandsOf, WITHOUT_COMMAND } from './route-commands.js';

type Row = readonly string[];

/** docs/verbs.md: what is done by the API, the command line and the page, noun by noun. */
export function verbsMarkdown({ commands }: Table): string {
  const paged = calledByPage(ROUTES);
  const served = ROUTES.map((route): Row => {
    const lines = commandsOf(route).map(name => `\`${name}\``);
    return [route.tag, apiOf(route), lines.join(', ') || '–', paged.has(route.id) ? 'yes' : '–'];
  });
  const named = new Set(ROUTES.flatMap(commandsOf));
  const without = ROUTES.filter(({ id }) => id in WITHOUT_COMMAND).map(
    (route): Row => [apiOf(route), WITHOUT_COMMAND[route.id]!],
  );
  const own = commands.filter(({ name }) => !named.has(name)).map(({ name, about }): Row => [`\`${name}\``, about]);
  return `# Verbs

What is done over the [admin API](administer.md#the-admin-api), at the [command line](administer.md#the-command-line) (each behind \`./trivet\`) and on the
[page](administer.md#the-dashboard), in the order of the API. \`./trivet openapi\` makes this page of the API's contract, the table of commands and the sources of the dashboard.

${drawn([['Noun', 'API, below `/api/v1`', 'Command line', 'Page'], ...served])}

## Routes without a command

${drawn([['API', 'Why'], ...without])}

## Commands without a route

They belong to the host, to the repository, or to another door of the appliance.

${drawn([['Command', 'What it does'], ...own])}
`;
}

const apiOf = ({ method, path }: RouteContract): string => `\`${method} ${path}\``;

/** With columns as wide as the formatter makes them. */
function drawn(rows: readonly Row[]): string {
  const cells = rows.map(row => row.map(cell => cell.replaceAll('|', '\\|')));
  const widths = cells[0]!.map((_, at) => Math.max(3, ...cells.map(row => row[at]!.length)));
  const line = (row: Row) => `| ${row.map((cell, at) => cell.padEnd(widths[at]!)).join(' | ')} |`;
  const [head, ...others] = cells;
  return [line(head!), `| ${widths.map(width => '-'.repeat(width)).join(' | ')} |`, ...others.map(line)].join('\n');
}
