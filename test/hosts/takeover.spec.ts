import { DEATHS, describeTakeover } from '#test/hosts/describe-takeover';

describeTakeover(DEATHS, { inOrder: false });
