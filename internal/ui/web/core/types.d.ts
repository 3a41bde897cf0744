// Names of the schemas of api/openapi.yaml, whose types openapi-typescript writes to openapi.d.ts when they are checked.
import type { components } from '../../openapi';
type S = components['schemas'];
export type Problem = S['Problem'];
export type LogEntry = S['LogEntry'];
export type Call = S['Call'];
export type Why = S['Why'];
export type Verdict = S['Verdict'];
export type Artifact = S['Artifact'];
export type Generation = S['Generation'];
export type Example = S['Example'];
export type Interface = S['Interface'];
export type Policy = S['Policy'];
export type AuditEntry = S['AuditEntry'];
export type Version = S['Version'];
export type Session = S['Session'];
export type UsageReport = S['UsageReport'];
export type Me = S['Me'];
export type InboxEntry = S['InboxEntry'];
