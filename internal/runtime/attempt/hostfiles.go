package attempt

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
	"github.com/recurgentd/recurgentd/internal/store"
)

// OpenFile opens a file of the call's owner, or one that the call is making. A replay opens the file that the journal
// names.
func (h *Host) OpenFile(ctx context.Context, id string) (*sandbox.OpenFile, *sandbox.AuthoredError) {
	if d := h.draft(id); d != nil {
		r := d.Reader()
		if r == nil {
			return nil, &sandbox.AuthoredError{Type: agent.ErrTool,
				Message: "the file " + agent.Clip(id, 64) +
					" is not closed: Close it, and look at the error, before it is read"}
		}
		return &sandbox.OpenFile{File: d.End(), ReadSeekCloser: &readFile{readSeekCloser{r, nopCloser{}}, h, id}}, nil
	}
	r, err := h.openStored(ctx, id)
	if err != nil {
		return nil, h.noFile(id, err)
	}
	return &sandbox.OpenFile{File: r.File, ReadSeekCloser: &readFile{r, h, id}}, nil
}

// draft returns the file with that ID that the program, or a program waiting for it, is making; nil if there is none.
func (h *Host) draft(id string) *files.Draft {
	for _, list := range [][]*files.Draft{h.Drafts, h.For.Lent} {
		for _, d := range list {
			if d.ID() == id {
				return d
			}
		}
	}
	return nil
}

// lends returns the files that programs of nested calls may read: the call's closed drafts, and what was lent to the
// call.
func (h *Host) lends() []*files.Draft {
	all := slices.Clip(h.For.Lent)
	for _, d := range h.Drafts {
		if d.Reader() != nil {
			all = append(all, d)
		}
	}
	return all
}

// openStored opens a stored file and verifies that its content is unchanged.
func (h *Host) openStored(ctx context.Context, id string) (*files.Reader, error) {
	keeper := h.For.Env.Files
	if keeper == nil {
		return nil, store.ErrNotFound
	}
	var r *files.Reader
	var err error
	if h.Recorded {
		r, err = keeper.OpenAgain(ctx, id)
	} else {
		r, err = keeper.OpenFile(ctx, h.For.Owner, id)
	}
	if err == nil { // verify first: a program may read only a part and answer from it
		if err = r.Verify(); err != nil {
			_ = r.Close() // nothing was read, so its error does not matter
		}
	}
	return r, err
}

// A readFile is an open file whose errors have types that programs understand.
type readFile struct {
	io.ReadSeekCloser
	host *Host
	id   string
}

func (r *readFile) Read(p []byte) (int, error) {
	n, err := r.ReadSeekCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		refused := r.host.noFile(r.id, err)
		err = &recurgent.Failure{Type: refused.Type, Message: refused.Message}
	}
	return n, err
}

// readSeekCloser joins a draft's reader, which needs no closing, with a Closer.
type readSeekCloser struct {
	io.ReadSeeker
	io.Closer
}

type nopCloser struct{}

func (nopCloser) Close() error { return nil }

// noFile returns a program's error for a file that cannot be read, for which the program is not to blame.
func (h *Host) noFile(id string, err error) *sandbox.AuthoredError {
	h.excuse(agent.ErrFileNotFound, agent.ClassExtrinsic, !errors.Is(err, store.ErrDamaged) &&
		!errors.Is(err, store.ErrNotFound))
	message := "there is no file " + agent.Clip(id, 64) + ", or it is gone"
	if errors.Is(err, store.ErrDamaged) {
		message = "the file " + agent.Clip(id, 64) + " is damaged: upload it again"
	} else if !errors.Is(err, store.ErrNotFound) {
		message = "the file " + agent.Clip(id, 64) + " cannot be read now"
	}
	return &sandbox.AuthoredError{Type: agent.ErrFileNotFound, Message: message}
}

// CreateFile begins a file of the call. op names its purpose in errors.
func (h *Host) CreateFile(ctx context.Context, op, name, mediaType string) (sandbox.NewFile, *sandbox.AuthoredError) {
	keeper := h.For.Env.Files
	if keeper == nil || len(h.Drafts) >= maxMade {
		return nil, &sandbox.AuthoredError{Type: agent.ErrDenied, Message: op + ": no more files can be made here"}
	}
	d, err := keeper.Begin(ctx, agent.File{Name: name, MediaType: mediaType, Owner: h.For.Owner,
		SessionID: h.For.Session.ID, CallID: h.For.ID})
	if err != nil {
		f := h.fileFailure(op, err)
		return nil, &sandbox.AuthoredError{Type: f.Type, Message: f.Message}
	}
	h.Drafts = append(h.Drafts, d)
	return &madeFile{d, h, op}, nil
}

// maxMade bounds the files that one run may make.
const maxMade = 64

// madeFile is a draft whose errors have types that programs understand.
type madeFile struct {
	*files.Draft
	host *Host
	op   string
}

func (m *madeFile) Write(p []byte) (int, error) {
	n, err := m.Draft.Write(p)
	if err != nil {
		return n, m.host.fileFailure(m.op, err)
	}
	return n, nil
}

// Discard removes the file, as if the program had not made it.
func (m *madeFile) Discard() {
	m.Draft.Discard()
	m.host.Drafts = slices.DeleteFunc(m.host.Drafts, func(d *files.Draft) bool { return d == m.Draft })
}

// fileFailure returns a program's error for err. A lack of room is not the program's fault; a file that is too large
// is.
func (h *Host) fileFailure(op string, err error) *recurgent.Failure {
	var over *files.LimitError
	var full *storage.FullError
	var input *agent.InputError
	switch {
	case errors.As(err, &input):
		return &recurgent.Failure{Type: agent.ErrInvalidInput, Message: op + ": " + input.Detail}
	case errors.As(err, &over) && over.Bound == files.LimitFile:
		return &recurgent.Failure{Type: agent.ErrInvalidInput, Message: op + ": " + over.Error()}
	}
	h.noRoom = true
	switch {
	case errors.As(err, &full):
		return &recurgent.Failure{Type: agent.ErrResourceExhausted,
			Message: op + ": there is no room for " + full.Error() + ". " + full.Hint()}
	case over != nil:
		return &recurgent.Failure{Type: agent.ErrResourceExhausted, Message: op + ": " + over.Error()}
	}
	return &recurgent.Failure{Type: agent.ErrResourceExhausted, Message: op + ": the file cannot be written now"}
}

// Discard discards the drafts, except those that have become files.
func Discard(drafts []*files.Draft) {
	for _, d := range drafts {
		d.Discard()
	}
}
