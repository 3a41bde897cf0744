package store

import (
	"context"
	"io"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Files holds files: bytes of any length, which are written and read as streams, and what is known of each. A file is whole or it is not
// there; what was being written when the process ended is gone.
type Files interface {
	// NewDraft begins the bytes of a file. ErrFull, ErrReadOnly.
	NewDraft() (Draft, error)
	// AddFile makes the draft a file. When it fails the draft is discarded. ErrNotFound when it names a session that is not there.
	AddFile(ctx context.Context, f NewFile) error
	// File returns what is known of a file. ErrNotFound when there is none, or its time is over.
	File(ctx context.Context, id string) (agent.File, error)
	// OpenFile opens its bytes, which nobody has compared with their digest. They can be read to the end even when the file is deleted meanwhile. ErrNotFound, ErrDamaged.
	OpenFile(ctx context.Context, id string) (FileReader, error)
	// ListFiles returns an owner's files, but internal ones, by id, which is by age, newest first, after the id after ("" for the start).
	ListFiles(ctx context.Context, owner, after string, limit int) ([]agent.File, error)
	// FileBytes sums the bytes of the files of a session or, where session is "", of those of the owner that belong to none; and of all files. Internal ones count only for all.
	FileBytes(ctx context.Context, owner, session string) (own, all int64, err error)
	// DeleteFile erases the file, and adds the entry to the audit trail, nil for none. ErrNotFound.
	DeleteFile(ctx context.Context, id string, audit *agent.AuditEntry) error
}

// NewFile is a draft with what is known of it. The bytes are the draft's from the start to where it was written.
type NewFile struct {
	agent.File
	Draft Draft
}

// A Draft is the bytes of a file that is being written. It belongs to one goroutine at a time. What was written can be read until it is a file, or discarded.
type Draft interface {
	io.Writer
	io.ReaderAt
	// Discard removes what was written, unless it has become a file. It may be called more than once.
	Discard()
}

// FileReader reads a file's bytes, from any place, concurrently.
type FileReader interface {
	io.ReaderAt
	io.Closer
}

// Versioned is a FileReader that notices changes: as long as its version is the same, so are the bytes. "" for one that does not.
type Versioned interface{ Version() string }
