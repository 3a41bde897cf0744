// Package agent holds the nouns that every part of recurgentd speaks: Session, Outcome, Contract, Record, Artifact,
// Tool, LogEntry, Policy. Their JSON forms are the seeds' data model, which clients, files and later programs
// depend on, so the tags here are binding.
//
// It does no I/O, knows no HTTP, no files and no models, and imports nothing of ours. Values are plain data:
// whoever shares one between goroutines guards it.
package agent
