// Package disk keeps a store.Store in a directory: a write-ahead journal, which makes an acknowledgement durable, and
// JSON files for people, which follow it.
//
// What a commit acknowledged survives a kill and a power cut: the journal entry is on disk first, and is replayed onto
// the files when the store is opened again. Commits that wait at the same time share one fsync. The files are at most
// a second behind (usage figures a minute) and complete after Close. A file that cannot be read is set aside as
// *.corrupt-<time> and counted, and the store opens. One process holds the directory.
//
// Costs do not grow with what is stored: sessions, histories and artifacts are read when they are asked for and held
// in bounded caches; only the registry and a few figures of every artifact are held in memory whole.
//
// It knows nothing of HTTP, of models, of contracts' meaning or of running programs.
package disk
