// Package disk keeps a store.Store in a directory: a write-ahead log (package wal), which makes commits durable, and
// readable files (JSON documents, and JSON lines by package jsonl), which are written afterwards.
//
// An acknowledged commit survives a kill and a power cut: its journal entry is on disk first and is replayed onto the
// files when the store is opened again. Commits that wait at the same time share one fsync. Readers see a call, or the
// cost of a model request, before its entry is synced; whatever follows from it comes later in the journal. They see
// any other change only after its sync. The files lag by at most a second (usage figures by a minute) and are complete
// after Close. A file that cannot be read is renamed to <name>.corrupt-<time> and counted, and the store opens without
// it. Only one process can use the directory at a time.
//
// Costs do not grow with the amount of stored data: sessions, histories and artifacts are read on demand and kept in
// bounded caches. A start opens no file of a namespace that the journal does not name, except the default one; such a
// namespace is loaded on first use. Nor does it open the files of a session that the journal only creates; the flusher
// does so before it writes. Only the registry, the metadata of files and a few figures of each artifact are held in
// memory in full, and only for namespaces in use.
//
// With Options.Interval, calls are acknowledged before their entries are synced. A power cut then loses at most the
// newest calls of one interval. Each entry records which entries before it might not have been on disk. This lets the
// replay distinguish a missing tail, which it drops as a whole, from damage. Files are written only after the journal
// is synced and are therefore never ahead of it.
//
// # Parts
//
// A Store has a sequencer, which all changes pass through; a flusher, which writes the files after the journal; and a
// part for each namespace. A namespace in turn has a part for each kind of data: sessions, artifacts, the catalog of
// tools, calls, the policy, the audit trail, patterns, contents, files, the archive. A part reads its files, implements
// its share of store.Namespace, applies its share of an entry, and writes its files when the flusher asks it to.
//
// # Directory
//
// The default namespace has its files at the top, as in earlier versions; any other has them below ns/<name>/:
//
//	tools/registry.json, tools/index.json, tools/<role>/<method>.json, tools/archive/, programs/<sha256>.go
//	sessions/<id>/session.json, sessions/<id>/history.jsonl
//	files.json, files/<id>
//	calls.jsonl, calls/, values/, audit.jsonl, policy.json, patterns.json, evidence.json, content.json
//	connections.json, spend.json, backup/, tmp/
//
// An erased namespace is renamed to ns/<name>.erased and then removed. All namespaces share one journal:
// journal/<lsn>.wal and journal/checkpoint.json.
//
// # Locks
//
// A goroutine takes these locks in this order and none of them twice. Tests and builds with the race detector check it.
//
//	archive    flusher.archive   read-locked by exports; held while something is archived or restored, or a
//	                             namespace is created or erased
//	flush      flusher.mu        held while files are written
//	sequence   sequencer.mu      held while a batch of commits is planned, written and applied
//	stripe     shared.stripes    held while the file of one session or artifact is read or handed to the cache
//	state      shared.mu         guards what readers see, except the content of sessions
//	session    session.mu        guards a session
//	lines      of package jsonl  guards the segments of a log
//	queue      sequencer.waiting guards the queue of commits; no other lock is taken while it is held
//
// The package knows nothing about HTTP, models, the meaning of contracts, or running programs.
package disk
