import { describe, expect, it } from 'vitest';
import { parseAccounts, parseConnections, parsePortals, parseTargets } from '#backends/tgt/tgt-show';

/** From tgtd 1.0.85. */
const TARGETS = `Target 5: iqn.2026-01.x:v5
    System information:
        Driver: iscsi
        State: ready
    I_T nexus information:
        I_T nexus: 421
            Initiator: iqn.2026-01.host:a alias: none
            Connection: 0
                IP Address: 127.0.0.1
    LUN information:
        LUN: 0
            Type: controller
            SCSI ID: IET     00050000
            SCSI SN: beaf50
            Size: 0 MB, Block size: 1
            Online: Yes
            Removable media: No
            Prevent removal: No
            Readonly: No
            SWP: No
            Thin-provisioning: No
            Backing store type: null
            Backing store path: None
            Backing store flags: 
        LUN: 1
            Type: disk
            SCSI ID: TRIVET  000130769120dd8b2ff456100d40
            SCSI SN: 0190aaaabbbb7ccc8ddd000000000001
            Size: 67 MB, Block size: 512
            Online: No
            Removable media: Yes
            Prevent removal: No
            Readonly: No
            SWP: No
            Thin-provisioning: Yes
            Backing store type: rdwr
            Backing store path: /pool/a: b
            Backing store flags: 
    Account information:
        /guard
        alice
    ACL information:
        iqn.2026-01.host:a
        iqn.2026-01.host:b
Target 6: iqn.2026-01.x:v6
    System information:
        Driver: iscsi
        State: ready
    I_T nexus information:
    LUN information:
    Account information:
    ACL information:
`;

describe('show', () => {
  it('targets', () => {
    expect(parseTargets(TARGETS)).toEqual([
      {
        tid: 5,
        iqn: 'iqn.2026-01.x:v5',
        units: [
          { lun: 0, scsiId: 'IET     00050000', online: true, removable: false, path: undefined },
          {
            lun: 1,
            scsiId: 'TRIVET  000130769120dd8b2ff456100d40',
            online: false,
            removable: true,
            path: '/pool/a: b',
          },
        ],
        accounts: ['/guard', 'alice'],
        initiators: ['iqn.2026-01.host:a', 'iqn.2026-01.host:b'],
        sessions: [{ initiator: 'iqn.2026-01.host:a', addresses: ['127.0.0.1'] }],
      },
      { tid: 6, iqn: 'iqn.2026-01.x:v6', units: [], accounts: [], initiators: [], sessions: [] },
    ]);
    expect(parseTargets('')).toEqual([]);
  });

  it('connections, portals and accounts', () => {
    const text = `Session: 421
    Connection: 1
        Initiator: iqn.2026-01.host:a
        IP Address: 127.0.0.1
    Connection: 0
        Initiator: iqn.2026-01.host:a
        IP Address: fe80::1
Session: 7
    Connection: 0
        Initiator: iqn.2026-01.host:b
        IP Address: 127.0.0.2
`;
    expect(parseConnections(text)).toEqual([
      { sid: 421, cid: 1, initiator: 'iqn.2026-01.host:a', address: '127.0.0.1' },
      { sid: 421, cid: 0, initiator: 'iqn.2026-01.host:a', address: 'fe80::1' },
      { sid: 7, cid: 0, initiator: 'iqn.2026-01.host:b', address: '127.0.0.2' },
    ]);
    expect(parsePortals('Portal: 127.0.0.1:3260,1\nPortal: [::1]:3260,1\n')).toEqual(['127.0.0.1:3260', '[::1]:3260']);
    expect(parseAccounts('Account list:\n    /guard\n    alice\n')).toEqual(['/guard', 'alice']);
    expect(parseAccounts('')).toEqual([]);
  });
});
