import { describeTakeover, PARTITIONS } from '#test/hosts/describe-takeover';

describeTakeover(PARTITIONS, { inOrder: true });
