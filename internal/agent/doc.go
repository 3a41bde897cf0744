// Package agent holds the types that every part of recurgentd shares: Session, Outcome, Contract, Record, Artifact,
// Tool, LogEntry, Policy. Their JSON encodings are the seeds' data model, which clients, files and later programs depend
// on, so the tags here are binding.
//
// It does no I/O, knows no HTTP, no files and no models, and imports no package of ours. Values are
// plain data: whoever shares one between goroutines must guard it. What reads arguments (Interface, Canonical) takes n log n in their size at most,
// as their keys are sorted.
package agent
