// Package disk keeps a store.Store in a directory: a write-ahead log (package wal), which makes
// commits durable, and readable files (JSON documents, and JSON lines by package jsonl), which are written after it.
//
// An acknowledged commit survives a kill and a power cut: its journal entry is on disk first, and is replayed onto
// the files when the store is opened again. Commits that wait at the same time share one fsync. Readers see a call before its entry is synced,
// and what follows from it is behind it in the journal; any other change they see afterwards. The files lag by at
// most a second (usage figures by a minute) and are complete after Close. A file that cannot be read is moved aside, to
// <name>.corrupt-<time>, and counted, and the store opens. One process locks the directory.
//
// Costs do not grow with what is stored: sessions, histories and artifacts are read on demand and kept
// in bounded caches. A start opens no file of a namespace that the journal does not name: who first needs it does. Nor does it open a file of a
// session that the journal only creates: the flusher does before it writes. Only the registry, what is known of each file, and a few figures of
// each artifact are held in memory in full, of the namespaces in use.
//
// With Options.Interval calls are acknowledged before their entries are synced. A power cut then takes at most the newest calls of an interval.
// Each entry says from where on the entries before it were not known to be on disk, so that the replay can distinguish a missing tail, which
// it drops whole, from damage. Files are written only after the journal is synced, and so are never ahead of it.
//
// # Parts
//
// A Store has a sequencer, through which every change goes; a flusher, which writes the files after the journal; and a
// part for each namespace, which in turn has a part for each kind of data: sessions, artifacts, the catalog of tools,
// calls, the policy, the audit trail, patterns, contents, files, the archive. A part reads its files, answers its share of
// store.Namespace, applies its share of an entry, and writes its files when the flusher says so.
//
// # Directory
//
// The default namespace has its files at the top, as in earlier versions; any other has them below ns/<name>/:
//
//	tools/registry.json, tools/index.json, tools/<role>/<method>.json, tools/archive/, programs/<sha256>.go
//	sessions/<id>/session.json, sessions/<id>/history.jsonl
//	files.json, files/<id>
//	calls.jsonl, calls/, values/, audit.jsonl, policy.json, patterns.json, evidence.json, content.json, connections.json, spend.json, backup/, tmp/
//
// An erased namespace is renamed to ns/<name>.erased and then removed. All namespaces share one journal: journal/<lsn>.wal and journal/checkpoint.json.
//
// # Locks
//
// A goroutine takes these locks in this order, and none twice. Tests and builds with the race detector check it.
//
//	archive    flusher.archive   read by exports; nothing is archived or restored, and no namespace is made or erased, meanwhile
//	flush      flusher.mu        held by whoever writes files
//	sequence   sequencer.mu      held while a batch of commits is planned, written and applied
//	stripe     shared.stripes    held while the file of one session or artifact is read, or handed to the cache
//	state      shared.mu         guards what readers see, except the content of sessions
//	session    session.mu        guards a session
//	lines      of package jsonl  guards the segments of a log
//	queue      sequencer.waiting guards the queue of commits; nothing is taken while it is held
//
// It knows nothing of HTTP, of models, of what contracts mean or of running programs.
package disk
