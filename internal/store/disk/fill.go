package disk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// filledLSN is the lsn of documents that no journal entry led to.
const filledLSN = 1

// Fill fills the directory, which must be empty or missing, with the items that each passes to give. It then opens the
// store once, which completes it. If filling fails, Fill removes what it wrote.
func Fill(ctx context.Context, dir string, o Options, each func(give func(*store.Item) error) error) error {
	fs, err := emptyDirectory(dir, o, "a copy")
	if err != nil {
		return err
	}
	o.FS = fs
	if err := whole(fs, func() error { return fillFiles(ctx, o, each) }); err != nil {
		return err
	}
	s, err := Open(dir, o)
	if err != nil {
		return err
	}
	return errors.Join(s.loadAll(), s.close())
}

// unfinishedFile marks a directory that is being filled. It keeps a partly filled directory from being used, also after
// a crash.
const unfinishedFile = "unfinished"

// whole calls fill for an empty directory, which is marked as unfinished meanwhile. If fill fails, whole removes what
// was written.
func whole(fs vfs.FS, fill func() error) error {
	err := markUnfinished(fs)
	if err == nil {
		err = fill()
	}
	if err != nil {
		return errors.Join(err, emptyOut(fs))
	}
	return errors.Join(fs.Remove(unfinishedFile), fs.SyncDir("."))
}

// markUnfinished durably creates unfinishedFile.
func markUnfinished(fs vfs.FS) error {
	f, err := fs.Open(unfinishedFile, true)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), fs.SyncDir("."))
}

// refuseUnfinished returns an error if the directory is being filled, or if filling it was interrupted.
func refuseUnfinished(dir string, fs vfs.FS) error {
	_, err := fs.Stat(unfinishedFile)
	if vfs.NotExist(err) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%s holds an unfinished copy or import; if none is in progress, remove the directory and "+
			"start again", dir)
	}
	return err
}

// emptyDirectory opens a directory that must be empty or missing. The error names what as the operation that needs it.
func emptyDirectory(dir string, o Options, what string) (vfs.FS, error) {
	fs, err := fileSystem(dir, o)
	if err != nil {
		return nil, err
	}
	names, err := fs.List(".")
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("%w: %s is not empty; %s needs an empty directory", store.ErrExists, dir, what)
	}
	return fs, nil
}

// fillFiles writes the files of all namespaces and then the checkpoint that names them.
func fillFiles(ctx context.Context, o Options, each func(give func(*store.Item) error) error) error {
	s, err := newStore(o)
	if err != nil {
		return err
	}
	defer s.shared.close()
	f := &filler{store: s, checkpoint: checkpointDoc{head: head{agent.SchemaVersion, filledLSN}}}
	if err := each(func(x *store.Item) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		return f.take(x)
	}); err != nil {
		return err
	}
	if err := f.finish(); err != nil {
		return err
	}
	// The items may not include the default namespace, which creates these directories.
	if err := errors.Join(s.root.makeDir(journalDir), s.root.Clean()); err != nil {
		return err
	}
	if err := s.root.writeDoc(checkpointFile, &f.checkpoint); err != nil {
		return err
	}
	return s.root.syncDirs(".")
}

// filler writes the files of namespaces, one namespace after another.
type filler struct {
	store      *Store
	checkpoint checkpointDoc

	n         *namespace // nil before the first namespace
	space     store.NamespaceInfo
	registry  registryDoc
	conns     connectionsDoc
	patterns  patternsDoc
	evidence  evidenceDoc
	contents  contentDoc
	files     filesDoc
	sessions  int64       // number of sessions
	session   *sessionDoc // the session whose records come next; nil if there is none
	history   vfs.File    // file of session's history; nil before its first record
	text      callText
	audit     int64 // size of the audit trail in bytes
	auditHead chain.Head
	archived  uint64 // number of archived items, for their file names
}

// docHead returns the head of all filled documents.
func docHead() head { return head{agent.SchemaVersion, filledLSN} }

// take writes an item, or keeps it for finish.
func (f *filler) take(x *store.Item) error {
	if x.Record == nil {
		if err := f.endSession(); err != nil {
			return err
		}
	}
	switch {
	case x.Space != nil:
		return f.begin(x.Space)
	case x.Policy != nil:
		return f.n.files.writeDoc(policyFile, policyDoc{docHead(), x.Policy.Revision, x.Policy.Policy})
	case x.Connection != nil:
		f.conns.Connections = append(f.conns.Connections, *x.Connection)
	case x.Tool != nil:
		f.registry.Tools[x.Tool.Role] = x.Tool
	case x.Artifact != nil:
		k := f.n.artifactKey(x.Artifact.Role, x.Artifact.MethodName)
		return f.write(k.file(), artifactDoc{x.Artifact, filledLSN})
	case x.Archived != nil:
		return f.archive(x.Archived)
	case x.Program != nil:
		if name, ok := programFile(agent.Checksum(*x.Program)); ok {
			return f.n.files.ReplaceUnsynced(name, []byte(*x.Program))
		}
	case x.Pattern != nil:
		f.patterns.Roles[x.Pattern.Role] = append(f.patterns.Roles[x.Pattern.Role], *x.Pattern)
	case x.Evidence != nil:
		f.evidence.Methods = append(f.evidence.Methods, *x.Evidence)
	case x.Content != nil:
		f.contents.Entries = append(f.contents.Entries, *x.Content)
	case x.Spent != nil:
		return f.n.files.writeDoc(spendFile, spendDoc{head: docHead(), Spent: *x.Spent})
	default:
		return f.line(x)
	}
	return nil
}

// line writes an item that is stored in lines or as bytes.
func (f *filler) line(x *store.Item) error {
	switch {
	case x.Session != nil:
		if !validID(x.Session.ID) {
			return badID(x.Session.ID)
		}
		f.sessions++
		f.session = &sessionDoc{head: docHead(), Session: x.Session.Session, Context: x.Session.Context}
		return f.n.files.Mkdir(sessionDir(x.Session.ID))
	case x.Record != nil:
		return f.record(x.Record)
	case x.Call != nil:
		return f.append(f.n.calls.entries, &f.text.entries, func(b []byte) ([]byte,
			error) {
			return append(b, x.Call...), nil
		})
	case x.Value != nil:
		v := valueLine{CallID: x.Value.CallID, SessionID: x.Value.SessionID, Owner: x.Value.Owner, Debug: x.Value.Debug,
			At: x.Value.At.UnixMilli(), Outcome: x.Value.Outcome, Effects: x.Value.Effects}
		if k := x.Value.Key; k != nil {
			v.Key, v.Reply = &replyKey{Key: k.Key, BodyHash: k.BodyHash, CallID: k.CallID}, k.Reply
		}
		return f.append(f.n.calls.values, &f.text.values, v.append)
	case x.File != nil:
		return f.file(x.File)
	case x.Audit != nil:
		return f.trail(x.Audit)
	}
	return errors.New("an item holds nothing that this version knows")
}

// write writes a document and creates its directory if necessary.
func (f *filler) write(name string, doc any) error {
	if err := f.n.files.Mkdir(path.Dir(name)); err != nil {
		return err
	}
	return f.n.files.writeDoc(name, doc)
}

// begin finishes the previous namespace and begins the next one.
func (f *filler) begin(info *store.NamespaceInfo) error {
	if err := f.finish(); err != nil {
		return err
	}
	n := newNamespace(f.store, info.Name)
	*f = filler{store: f.store, checkpoint: f.checkpoint, n: n, space: *info,
		registry: registryDoc{docHead(), map[string]*agent.Tool{}}, conns: connectionsDoc{head: docHead()},
		patterns: patternsDoc{docHead(), map[string][]agent.PatternEvent{}},
		evidence: evidenceDoc{docHead(), []agent.MethodEvidence{}}, contents: contentDoc{head: docHead()},
		files: filesDoc{docHead(), []agent.File{}}}
	if err := n.layOut(); err != nil {
		return err
	}
	return errors.Join(n.calls.entries.Open(nil), n.calls.values.Open(nil))
}

// finish writes the documents of the namespace and sets what the checkpoint records of it.
func (f *filler) finish() error {
	if f.n == nil {
		return nil
	}
	if err := f.endSession(); err != nil {
		return err
	}
	for name, doc := range map[string]any{registryFile: f.registry, connectionsFile: f.conns, patternsFile: f.patterns,
		evidenceFile: f.evidence, contentFile: f.contents, filesFile: f.files} {
		if err := f.n.files.writeDoc(name, doc); err != nil {
			return err
		}
	}
	at := checkpointed{Audit: f.audit, Sessions: f.sessions, life: life{Created: f.space.CreatedAt}}
	if f.auditHead.Begun() {
		h := f.auditHead
		at.AuditHead = &h
	}
	var err error
	if at.Calls, err = f.n.calls.entries.Sync(); err != nil {
		return err
	}
	if at.Values, err = f.n.calls.values.Sync(); err != nil {
		return err
	}
	if f.n.name == agent.DefaultNamespace {
		f.checkpoint.checkpointed = at
		return nil
	}
	if f.checkpoint.Namespaces == nil {
		f.checkpoint.Namespaces, f.checkpoint.SchemaVersion = map[agent.Namespace]*checkpointed{}, namespacesVersion
	}
	f.checkpoint.Namespaces[f.n.name] = &at
	return nil
}

// record appends a record to the history of the current session.
func (f *filler) record(x *store.ItemRecord) (err error) {
	if f.session == nil || f.session.ID != x.SessionID {
		return fmt.Errorf("a record of session %s comes before the session", x.SessionID)
	}
	if f.history == nil {
		if f.history, err = f.n.files.Open(historyFile(x.SessionID), true); err != nil {
			return err
		}
	}
	// The capacity is limited so that append copies the record, which belongs to the giver.
	line := append(x.Record[:len(x.Record):len(x.Record)], '\n')
	_, err = f.history.WriteAt(line, f.session.SyncedBytes)
	f.session.SyncedBytes += int64(len(line))
	f.session.SyncedRecords++
	return err
}

// endSession writes the document of the current session, if there is one.
func (f *filler) endSession() (err error) {
	doc := f.session
	if doc == nil {
		return nil
	}
	if f.history != nil {
		err = errors.Join(f.history.Sync(), f.history.Close())
	}
	f.session, f.history = nil, nil
	doc.HistorySize = doc.SyncedRecords
	return errors.Join(err, f.n.files.writeDoc(sessionFile(doc.ID), doc))
}

// append appends a line to a log.
func (f *filler) append(log *jsonl.Log, text *jsonl.Text, line func([]byte) ([]byte, error)) error {
	text.Reset(1)
	if err := errors.Join(text.Add(line), log.Rotate()); err != nil {
		return err
	}
	if err := log.Append(text); err != nil {
		return err
	}
	log.Publish(text)
	return nil
}

func (f *filler) archive(x *store.ItemArchived) error {
	f.archived++
	stamp := stampOf(x.At, f.archived, x.Deleted, x.By)
	if x.Tool != nil {
		return f.write(archiveFile(store.Target{Role: x.Tool.Role}, stamp), toolDoc{agent.SchemaVersion, *x.Tool})
	}
	return f.write(archiveFile(store.Target{Role: x.Artifact.Role, Method: x.Artifact.MethodName}, stamp),
		artifactDoc{x.Artifact, filledLSN})
}

func (f *filler) file(x *store.ItemFile) error {
	if !validID(x.ID) {
		return badID(x.ID)
	}
	in, err := x.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := f.n.files.Open(path.Join(filesDir, x.ID), true)
	if err != nil {
		return err
	}
	size, err := io.Copy(io.NewOffsetWriter(out, 0), in)
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil && size != x.Bytes {
		err = fmt.Errorf("file %s has %d bytes, not %d", x.ID, size, x.Bytes)
	}
	f.files.Files = append(f.files.Files, x.File)
	return err
}

// trail appends a line of the audit trail without changing it. The chain of hashes covers its bytes.
func (f *filler) trail(line json.RawMessage) error {
	var e agent.AuditEntry
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("a line of the audit trail: %w", err)
	}
	if e.Hash != "" {
		f.auditHead = chain.Head{Seq: e.Seq, Hash: e.Hash}
	}
	n, err := jsonl.Append(f.n.files, auditFile, f.audit, [][]byte{line})
	f.audit += n
	return err
}
