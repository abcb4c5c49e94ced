import { describeCsp } from '#test/csp/describe-csp';
import { openRoom } from '#test/csp/room-target';

describeCsp('the CSP room over a double of the domain', () => openRoom());
