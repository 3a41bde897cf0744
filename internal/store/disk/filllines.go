package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/jsonl"
)

// record appends a record to the history of the current session.
func (f *filler) record(x *store.ItemRecord) (err error) {
	if f.session == nil || f.session.ID != x.SessionID {
		return fmt.Errorf("a record of session %s does not stand behind it", x.SessionID)
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
