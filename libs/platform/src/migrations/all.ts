import { Foundation1795132800000 } from '#platform/migrations/0001-foundation';
import { BlockVolumes1795219200000 } from '#platform/migrations/0002-block-volumes';
import { Users1795305600000 } from '#platform/migrations/0003-users';
import { Protection1795392000000 } from '#platform/migrations/0004-protection';
import { Changes1795478400000 } from '#platform/migrations/0005-changes';
import { Admin1795564800000 } from '#platform/migrations/0006-admin';
import { Identities1795651200000 } from '#platform/migrations/0007-identities';
import { Health1795651260000 } from '#platform/migrations/0008-health';
import { LeanOperations1795737600000 } from '#platform/migrations/0009-lean-operations';
import { BucketIdentity1795824000000 } from '#platform/migrations/0010-bucket-identity';
import { TargetIdentity1795910400000 } from '#platform/migrations/0011-target-identity';
import { GivingWay1795996800000 } from '#platform/migrations/0012-giving-way';
import { GroupProtection1796083200000 } from '#platform/migrations/0013-group-protection';
import { WaitingForBackends1796256000000 } from '#platform/migrations/0015-waiting-for-backends';
import { AuditDoors1796342400000 } from '#platform/migrations/0016-audit-doors';
import { Evidence1796428800000 } from '#platform/migrations/0017-evidence';
import { QuotaGivesWay1796515200000 } from '#platform/migrations/0018-quota-gives-way';
import { CircuitStates1796688000000 } from '#platform/migrations/0020-circuit-states';
import { AuditRetention1796774400000 } from '#platform/migrations/0021-audit-retention';
import { AllocatedBytes1796860800000 } from '#platform/migrations/0022-allocated-bytes';
import { PeriodicTasks1796947200000 } from '#platform/migrations/0023-periodic-tasks';
import { GrowingVolumes1797033600000 } from '#platform/migrations/0024-growing-volumes';
import { ActionIndex1797120000000 } from '#platform/migrations/0025-action-index';
import { GivingWayNoted1797123600000 } from '#platform/migrations/0025-giving-way-noted';
import { HostFenceSeen1797210000000 } from '#platform/migrations/0026-host-fence-seen';
import { Tallies1797210000010 } from '#platform/migrations/0027-tallies';
import { TalliesRead1797210000020 } from '#platform/migrations/0028-tallies-read';
import { GrowingIndexes1797210000040 } from '#platform/migrations/0030-growing-indexes';
import { LookUpByIndex1797210000050 } from '#platform/migrations/0031-look-up-by-index';
import { WaitsForPool1797210000070 } from '#platform/migrations/0033-waits-for-pool';
import { OldestRelease1797210000090 } from '#platform/migrations/0035-oldest-release';
import { LostCommits1797210000100 } from '#platform/migrations/0036-lost-commits';
import { WhatIsDue1797210000110 } from '#platform/migrations/0037-what-is-due';
import { ToldChanges1797210000120 } from '#platform/migrations/0038-told-changes';
import { FairCap1797210000130 } from '#platform/migrations/0039-fair-cap';
import { EndsOfSeveralTenants1797210000140 } from '#platform/migrations/0040-ends-of-several-tenants';
import { ChangeUpkeep1797210000160 } from '#platform/migrations/0042-change-upkeep';
import { Tombstones1797210000170 } from '#platform/migrations/0043-tombstones';
import { AuditPlaces1797210000185 } from '#platform/migrations/0044-audit-places';
import { ChangeUpkeepRead1797210000180 } from '#platform/migrations/0044-change-upkeep-read';
import { LostOnce1797210000190 } from '#platform/migrations/0045-lost-once';
import { StorageHosts1797210000250 } from '#platform/migrations/0051-storage-hosts';
import { OperationsOfPool1797210000260 } from '#platform/migrations/0052-operations-of-pool';
import { Clusters1797210000300 } from '#platform/migrations/0056-clusters';
import { DatabaseRestores1797210000310 } from '#platform/migrations/0057-database-restores';
import { PoolMoves1797210000320 } from '#platform/migrations/0058-pool-moves';
import { ExportLeases1797210000330 } from '#platform/migrations/0059-export-leases';
import { LostLeases1797210000340 } from '#platform/migrations/0060-lost-leases';
import { TakeoversTold1797210000360 } from '#platform/migrations/0062-takeovers';
import { ClusterConnectors1797210000370 } from '#platform/migrations/0063-cluster-connectors';
import { SessionsOfClusters1797210000380 } from '#platform/migrations/0064-sessions-of-clusters';
import { DueSchedules1797210000397 } from '#platform/migrations/0066-due-schedules';
import { TalliesOfBins1797210000398 } from '#platform/migrations/0066-tallies-of-bins';
import { TallyPasses1797210000396 } from '#platform/migrations/0066-tally-passes';
import { PlacesOfDownPools1797210000400 } from '#platform/migrations/0067-places-of-down-pools';
import { PortionsInOrder1797210000401 } from '#platform/migrations/0068-portions-in-order';
import { TalliesNotCounted1797210000402 } from '#platform/migrations/0069-tallies-not-counted';
import { PortalSets1797210000403 } from '#platform/migrations/0070-portal-sets';
import { ApplianceBackups1797210000409 } from '#platform/migrations/0076-appliance-backups';
import { SettledPasses1797210000410 } from '#platform/migrations/0077-settled-passes';
import { SessionsByCluster1797210000420 } from '#platform/migrations/0078-sessions-by-cluster';
import { ChangedKeys1797210000421 } from '#platform/migrations/0079-changed-keys';
import { KeysThatAreDue1797210000422 } from '#platform/migrations/0080-keys-that-are-due';
import { Alerts1797210000430 } from '#platform/migrations/0081-alerts';
import { ListsOfAllTenants1797210000801 } from '#platform/migrations/0086-lists-of-all-tenants';
import { OrdersOfAllTenants1797210000802 } from '#platform/migrations/0087-orders-of-all-tenants';
import { Search1797210000803 } from '#platform/migrations/0088-search';
import { NamedSignatures1797210001001 } from '#platform/migrations/0089-named-signatures';
import { RepeatedJoins1797210001200 } from '#platform/migrations/0090-repeated-joins';
import { Usage1797210001400 } from '#platform/migrations/0096-usage';
import { VolumeIo1797210001410 } from '#platform/migrations/0097-volume-io';
import { OneOrderOfNames1797210001510 } from '#platform/migrations/0099-one-order-of-names';
import { HostsOfPeople1797210001600 } from '#platform/migrations/0100-hosts-of-people';
import { BulkItems1797210001700 } from '#platform/migrations/0101-bulk-items';
import { SavedViews1797210001710 } from '#platform/migrations/0102-saved-views';
import { KnownLogins1797210001810 } from '#platform/migrations/0103-known-logins';
import { SecondFactors1797210001820 } from '#platform/migrations/0104-second-factors';
import { Passkeys1797210001830 } from '#platform/migrations/0105-passkeys';
import type { Migration } from '#platform/migrations/locks';

/** In their order. */
export const MIGRATIONS = [
  Foundation1795132800000,
  BlockVolumes1795219200000,
  Users1795305600000,
  Protection1795392000000,
  Changes1795478400000,
  Admin1795564800000,
  Identities1795651200000,
  Health1795651260000,
  LeanOperations1795737600000,
  BucketIdentity1795824000000,
  TargetIdentity1795910400000,
  GivingWay1795996800000,
  GroupProtection1796083200000,
  WaitingForBackends1796256000000,
  AuditDoors1796342400000,
  Evidence1796428800000,
  QuotaGivesWay1796515200000,
  CircuitStates1796688000000,
  AuditRetention1796774400000,
  AllocatedBytes1796860800000,
  PeriodicTasks1796947200000,
  GrowingVolumes1797033600000,
  ActionIndex1797120000000,
  GivingWayNoted1797123600000,
  HostFenceSeen1797210000000,
  Tallies1797210000010,
  TalliesRead1797210000020,
  GrowingIndexes1797210000040,
  LookUpByIndex1797210000050,
  WaitsForPool1797210000070,
  OldestRelease1797210000090,
  LostCommits1797210000100,
  WhatIsDue1797210000110,
  ToldChanges1797210000120,
  FairCap1797210000130,
  EndsOfSeveralTenants1797210000140,
  ChangeUpkeep1797210000160,
  Tombstones1797210000170,
  ChangeUpkeepRead1797210000180,
  AuditPlaces1797210000185,
  LostOnce1797210000190,
  StorageHosts1797210000250,
  OperationsOfPool1797210000260,
  Clusters1797210000300,
  DatabaseRestores1797210000310,
  PoolMoves1797210000320,
  ExportLeases1797210000330,
  LostLeases1797210000340,
  TakeoversTold1797210000360,
  ClusterConnectors1797210000370,
  SessionsOfClusters1797210000380,
  TallyPasses1797210000396,
  DueSchedules1797210000397,
  TalliesOfBins1797210000398,
  PlacesOfDownPools1797210000400,
  PortionsInOrder1797210000401,
  TalliesNotCounted1797210000402,
  PortalSets1797210000403,
  ApplianceBackups1797210000409,
  SettledPasses1797210000410,
  SessionsByCluster1797210000420,
  ChangedKeys1797210000421,
  KeysThatAreDue1797210000422,
  Alerts1797210000430,
  ListsOfAllTenants1797210000801,
  OrdersOfAllTenants1797210000802,
  Search1797210000803,
  NamedSignatures1797210001001,
  RepeatedJoins1797210001200,
  Usage1797210001400,
  VolumeIo1797210001410,
  OneOrderOfNames1797210001510,
  HostsOfPeople1797210001600,
  BulkItems1797210001700,
  SavedViews1797210001710,
  KnownLogins1797210001810,
  SecondFactors1797210001820,
  Passkeys1797210001830,
] satisfies readonly (new () => Migration)[];
