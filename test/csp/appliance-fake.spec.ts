import { openAppliance } from '#test/csp/appliance-target';
import { describeCsp } from '#test/csp/describe-csp';

describeCsp('the appliance on the fake block backend', () => openAppliance('fake'));
