// Package agent holds the types that every part of recurgentd shares: Session, Outcome, Contract, Record, Artifact,
// Tool, LogEntry, Policy. Their JSON encodings are the seeds' data model. Clients, stored files and later versions
// depend on it, so the tags here are binding.
//
// The package does no I/O, knows nothing of HTTP, files or models, and imports nothing from this module but its own
// subpackages. Values are plain data without locks: a caller that shares one between goroutines must guard it.
// Functions that read arguments (Interface, Canonical) sort their keys, so they take O(n log n) in the size of the
// arguments.
package agent
