package runtime

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/charsets"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
	"github.com/recurgentd/recurgentd/internal/store"
)

// OpenFile opens a file of the call's owner, or in a replay the one that the journal names.
func (h *host) OpenFile(ctx context.Context, id string, text bool) (*sandbox.OpenFile, *sandbox.AuthoredError) {
	r, refused := h.openFile(ctx, id)
	if refused != nil || !text {
		return openFile(r, r), refused
	}
	name, err := encodingOf(r)
	if err == nil && name == "" {
		_ = r.Close() // nothing was read
		return nil, &sandbox.AuthoredError{Type: agent.ErrParseFailed, Message: "the file " + Clip(id, 64) + " is no text: read its bytes with call.Open"}
	}
	var decoded io.Reader
	if err == nil {
		decoded, err = charsets.NewReader(bufio.NewReaderSize(r, storedPiece), name) // a decoder asks for little at a time
	}
	if err != nil {
		_ = r.Close()
		return nil, h.noFile(id, err)
	}
	return openFile(r, struct {
		io.Reader
		io.Closer
	}{decoded, r}), nil
}

// storedPiece is how much of a stored text is read at once.
const storedPiece = 256 << 10

// FileInfo describes a file of the call's owner.
func (h *host) FileInfo(ctx context.Context, id string) (recurgent.FileInfo, *sandbox.AuthoredError) {
	r, refused := h.openFile(ctx, id)
	if refused != nil {
		return recurgent.FileInfo{}, refused
	}
	defer func() { _ = r.Close() }() // it was only read
	name, err := encodingOf(r)
	if err != nil {
		return recurgent.FileInfo{}, h.noFile(id, err)
	}
	return recurgent.FileInfo{Name: r.Name, MediaType: r.MediaType, Encoding: name, Bytes: r.Bytes}, nil
}

func openFile(r *files.Reader, from io.ReadCloser) *sandbox.OpenFile {
	if r == nil {
		return nil
	}
	return &sandbox.OpenFile{File: r.File, ReadCloser: from}
}

// encodingOf reads a file to guess its character set, and goes back to its beginning.
func encodingOf(r *files.Reader) (string, error) {
	name, err := charsets.Guess(r, r.MediaType)
	if err == nil {
		_, err = r.Seek(0, io.SeekStart)
	}
	return name, err
}

// openFile opens a file that is what was stored.
func (h *host) openFile(ctx context.Context, id string) (*files.Reader, *sandbox.AuthoredError) {
	keeper := h.call.r.o.Files
	if keeper == nil {
		return nil, &sandbox.AuthoredError{Type: agent.ErrDenied, Message: "there are no files here"}
	}
	var r *files.Reader
	var err error
	if h.recorded {
		r, err = keeper.OpenAgain(ctx, id)
	} else {
		r, err = keeper.OpenFile(ctx, h.call.owner, id)
	}
	if err == nil { // a program may read a part of it, and answer from that
		if err = r.Verify(); err != nil {
			_ = r.Close() // nothing was read
		}
	}
	if err != nil {
		return nil, h.noFile(id, err)
	}
	return r, nil
}

// noFile is what a program sees of a file that cannot be read. It is not to blame.
func (h *host) noFile(id string, err error) *sandbox.AuthoredError {
	h.excuse(agent.ErrFileNotFound, agent.ClassExtrinsic, !errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrNotFound))
	message := "there is no file " + Clip(id, 64) + ", or it is gone"
	if errors.Is(err, store.ErrDamaged) {
		message = "the file " + Clip(id, 64) + " is damaged: upload it again"
	} else if !errors.Is(err, store.ErrNotFound) {
		message = "the file " + Clip(id, 64) + " cannot be read now"
	}
	return &sandbox.AuthoredError{Type: agent.ErrFileNotFound, Message: message}
}

// CreateFile begins a file of the call.
func (h *host) CreateFile(ctx context.Context, name, mediaType string) (sandbox.NewFile, *sandbox.AuthoredError) {
	keeper := h.call.r.o.Files
	if keeper == nil || len(h.drafts) >= maxMade {
		return nil, &sandbox.AuthoredError{Type: agent.ErrDenied, Message: "create: no more files can be made here"}
	}
	d, err := keeper.Begin(ctx, agent.File{Name: name, MediaType: mediaType, Owner: h.call.owner, SessionID: h.call.session.ID, CallID: h.call.id})
	if err != nil {
		f := h.fileFailure(err)
		return nil, &sandbox.AuthoredError{Type: f.Type, Message: f.Message}
	}
	h.drafts = append(h.drafts, d)
	return &madeFile{d, h}, nil
}

// maxMade is how many files one run may make.
const maxMade = 64

// madeFile is a draft whose errors programs understand.
type madeFile struct {
	*files.Draft
	host *host
}

func (m *madeFile) Write(p []byte) (int, error) {
	n, err := m.Draft.Write(p)
	if err != nil {
		return n, m.host.fileFailure(err)
	}
	return n, nil
}

// fileFailure is what a program sees of an error. That there is no room is not its fault; that a file is too large is.
func (h *host) fileFailure(err error) *recurgent.Failure {
	var over *files.LimitError
	var full *storage.FullError
	var input *agent.InputError
	switch {
	case errors.As(err, &input):
		return &recurgent.Failure{Type: agent.ErrInvalidInput, Message: "create: " + input.Detail}
	case errors.As(err, &over) && over.Bound == files.LimitFile:
		return &recurgent.Failure{Type: agent.ErrInvalidInput, Message: "create: " + over.Error()}
	}
	h.noRoom = true
	switch {
	case errors.As(err, &full):
		return &recurgent.Failure{Type: agent.ErrResourceExhausted, Message: "create: there is no room for " + full.Error() + ". " + full.Hint()}
	case over != nil:
		return &recurgent.Failure{Type: agent.ErrResourceExhausted, Message: "create: " + over.Error()}
	}
	return &recurgent.Failure{Type: agent.ErrResourceExhausted, Message: "create: the file cannot be written now"}
}

// newFiles are the drafts that the call's value, or its change of the context, refers to.
func (a *answered) newFiles() (kept []store.NewFile) {
	if len(a.drafts) == 0 || !a.outcome.OK() {
		return nil
	}
	refs := agent.FileRefs(a.outcome.Value)
	if a.context != nil {
		for _, v := range a.context.Set {
			refs = append(refs, agent.FileRefs(v)...)
		}
	}
	for _, d := range a.drafts {
		if slices.Contains(refs, d.ID()) {
			kept = append(kept, d.New())
		}
	}
	return kept
}

// discard discards drafts; those that are files by now stay.
func discard(drafts []*files.Draft) {
	for _, d := range drafts {
		d.Discard()
	}
}
