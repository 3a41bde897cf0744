package runtime

import (
	"context"
	"errors"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
	"github.com/recurgentd/recurgentd/internal/store"
)

// OpenFile opens a file of the call's owner, or in a replay the one that the journal names.
func (h *host) OpenFile(ctx context.Context, id string) (*sandbox.OpenFile, *sandbox.AuthoredError) {
	keeper := h.call.r.o.Files
	if keeper == nil {
		return nil, &sandbox.AuthoredError{Type: agent.ErrDenied, Message: "open: there are no files here"}
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
		h.excuse(agent.ErrFileNotFound, agent.ClassExtrinsic, !errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrNotFound))
		message := "there is no file " + Clip(id, 64) + ", or it is gone"
		if errors.Is(err, store.ErrDamaged) {
			message = "the file " + Clip(id, 64) + " is damaged: upload it again"
		} else if !errors.Is(err, store.ErrNotFound) {
			message = "the file " + Clip(id, 64) + " cannot be read now"
		}
		return nil, &sandbox.AuthoredError{Type: agent.ErrFileNotFound, Message: message}
	}
	return &sandbox.OpenFile{File: r.File, ReadCloser: r}, nil
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
