package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/eject"
	"github.com/recurgentd/recurgentd/internal/client"
)

// An uploaded is a file of the module that was sent to the daemon.
type uploaded struct {
	id   string // at the daemon
	kept bool   // stored examples refer to it
}

// fileReference matches a reference to a file in JSON text. It cannot match inside a JSON string, where the quotes
// would be escaped.
var fileReference = regexp.MustCompile(`(\{\s*"\` + agent.FileKey + `"\s*:\s*)("[^"\\]*")(\s*\})`)

// withFiles returns the examples of the file with references to the daemon's files in place of the module's. It uploads
// files that the daemon lacks.
func (t *imports) withFiles(x *eject.Stored) ([]json.RawMessage, error) {
	ids := map[string]json.RawMessage{}
	for id, f := range x.Files {
		here, err := t.fileHere(id, f)
		if err != nil {
			return nil, err
		}
		ids[string(agent.Encoded(id))] = agent.Encoded(here)
	}
	examples := examplesOf(x.File)
	for i := range examples {
		examples[i] = fileReference.ReplaceAllFunc(examples[i], func(ref []byte) []byte {
			part := fileReference.FindSubmatch(ref)
			if here := ids[string(part[2])]; here != nil {
				return bytes.Join([][]byte{part[1], here, part[3]}, nil)
			}
			return ref
		})
	}
	return examples, nil
}

// fileHere returns the daemon's id of a file of the module.
func (t *imports) fileHere(id string, f eject.File) (string, error) {
	if known := t.uploads[id]; known != nil {
		return known.id, nil
	}
	var there agent.File
	var no *client.Refusal
	err := t.c.Get(t.ctx, client.FilePath(id), &there)
	if err == nil && there.SHA256 == f.SHA256 {
		return id, nil
	}
	if err != nil && (!errors.As(err, &no) || no.Status != http.StatusNotFound) {
		return "", err
	}
	there, err = t.c.Upload(t.ctx, f.File, bytes.NewReader(f.Data), f.Bytes)
	if err != nil {
		return "", err
	}
	t.uploads[id] = &uploaded{id: there.ID}
	return there.ID, nil
}

// keepFiles records that stored examples refer to the method's files.
func (t *imports) keepFiles(x *eject.Stored) {
	for id := range x.Files {
		if f := t.uploads[id]; f != nil {
			f.kept = true
		}
	}
}

// removeUnused deletes the uploaded files of methods that were refused.
func (t *imports) removeUnused() error {
	var failed error
	for _, f := range t.uploads {
		if !f.kept {
			_, err := t.c.Do(t.ctx, http.MethodDelete, client.FilePath(f.id), nil)
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
