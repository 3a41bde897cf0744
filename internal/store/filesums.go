package store

import "github.com/recurgentd/recurgentd/internal/agent"

// FileSums counts the bytes of files, so that nobody need sum them up. The zero value counts none. It is not safe for concurrent use.
type FileSums struct {
	All  int64 // internal ones too: what a disk has
	held map[holder]int64
}

// holder is who a file that is not internal counts for: its session or, where it belongs to none, its owner.
type holder struct{ session, owner string }

func holderOf(session, owner string) holder {
	if session != "" {
		owner = ""
	}
	return holder{session, owner}
}

// Add counts a file that was added.
func (s *FileSums) Add(f *agent.File) { s.count(f, f.Bytes) }

// Remove counts a file that went.
func (s *FileSums) Remove(f *agent.File) { s.count(f, -f.Bytes) }

func (s *FileSums) count(f *agent.File, bytes int64) {
	s.All += bytes
	if f.Internal {
		return
	}
	if s.held == nil {
		s.held = map[holder]int64{}
	}
	k := holderOf(f.SessionID, f.Owner)
	if s.held[k] += bytes; s.held[k] == 0 {
		delete(s.held, k)
	}
}

// Of returns the bytes of a session's files or, where session is "", of the owner's that belong to none.
func (s *FileSums) Of(owner, session string) int64 { return s.held[holderOf(session, owner)] }
