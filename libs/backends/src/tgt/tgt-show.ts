/** What tgtd's `show` says, read by indentation: four blanks a level, `Name: value` or a bare value in a line. */

export interface ShownTarget {
  tid: number;
  iqn: string;
  units: ShownUnit[];
  /** In the order of their slots. */
  accounts: string[];
  /** Names and addresses alike. */
  initiators: string[];
  sessions: { initiator: string; addresses: string[] }[];
}

export interface ShownUnit {
  lun: number;
  scsiId: string;
  online: boolean;
  removable: boolean;
  path: string | undefined;
}

export interface ShownConnection {
  sid: number;
  cid: number;
  initiator: string;
  address: string;
}

const HEAD = /^Target (\d+): (.*)$/;
const SECTION = /^ {4}(\S.*):$/;

export function parseTargets(text: string): ShownTarget[] {
  const targets: ShownTarget[] = [];
  let section = '';
  let unit: ShownUnit | undefined;
  for (const line of text.split('\n')) {
    const head = HEAD.exec(line);
    if (head) {
      targets.push({
        tid: Number(head[1]),
        iqn: head[2] as string,
        units: [],
        accounts: [],
        initiators: [],
        sessions: [],
      });
      section = '';
      continue;
    }
    const target = targets.at(-1);
    if (!target) continue;
    const heading = SECTION.exec(line);
    if (heading) section = heading[1] as string;
    else if (section === 'I_T nexus information') readSessionLine(line, target);
    else if (section === 'LUN information') unit = readUnitLine(line, target, unit);
    else if (section === 'Account information') target.accounts.push(line.trim());
    else if (section === 'ACL information' && line.trim() !== '') target.initiators.push(line.trim());
  }
  return targets;
}

function readSessionLine(line: string, target: ShownTarget): void {
  const initiator = /^ {12}Initiator: (\S+)/.exec(line)?.[1];
  const address = /^ {16}IP Address: (.*)$/.exec(line)?.[1];
  if (initiator !== undefined) target.sessions.push({ initiator, addresses: [] });
  else if (address !== undefined) target.sessions.at(-1)?.addresses.push(address);
}

function readUnitLine(line: string, target: ShownTarget, unit: ShownUnit | undefined): ShownUnit | undefined {
  const start = /^ {8}LUN: (\d+)$/.exec(line);
  if (start) {
    const next = { lun: Number(start[1]), scsiId: '', online: false, removable: false, path: undefined };
    target.units.push(next);
    return next;
  }
  // Blanks at the end of an identifier count.
  const [, name, value = ''] = /^ {12}([^:]+): ?(.*)$/.exec(line) ?? [];
  if (unit === undefined || name === undefined) return unit;
  if (name === 'SCSI ID') unit.scsiId = value;
  else if (name === 'Online') unit.online = value === 'Yes';
  else if (name === 'Removable media') unit.removable = value === 'Yes';
  else if (name === 'Backing store path' && value !== 'None') unit.path = value;
  return unit;
}

export function parseConnections(text: string): ShownConnection[] {
  const connections: ShownConnection[] = [];
  let sid = 0;
  for (const line of text.split('\n')) {
    const [, name, value = ''] = /^ *([^:]+): (.*)$/.exec(line) ?? [];
    const last = connections.at(-1);
    if (name === 'Session') sid = Number(value);
    else if (name === 'Connection') connections.push({ sid, cid: Number(value), initiator: '', address: '' });
    else if (last && name === 'Initiator') last.initiator = value;
    else if (last && name === 'IP Address') last.address = value;
  }
  return connections;
}

/** `address:port` each, as tgtd spells them. */
export function parsePortals(text: string): string[] {
  return [...text.matchAll(/^Portal: (.*),\d+$/gm)].map(match => match[1] as string);
}

export function parseAccounts(text: string): string[] {
  return text
    .split('\n')
    .filter(line => line.startsWith('    '))
    .map(line => line.trim());
}
