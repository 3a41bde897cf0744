package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// NewFile writes text to a draft, and returns f with its size and the draft.
func NewFile(s store.Files, f agent.File, text string) (store.NewFile, error) {
	d, err := s.NewDraft()
	if err != nil {
		return store.NewFile{}, err
	}
	for part := range bytes.Lines([]byte(text)) {
		if _, err := d.Write(part); err != nil {
			return store.NewFile{}, err
		}
	}
	f.Bytes = int64(len(text))
	return store.NewFile{File: f, Draft: d}, nil
}

// fileText reads a whole file.
func fileText(s store.Files, f agent.File) (string, error) {
	r, err := s.OpenFile(context.Background(), f.ID)
	if err != nil {
		return "", err
	}
	defer r.Close()
	text, err := io.ReadAll(io.NewSectionReader(r, 0, f.Bytes+1))
	return string(text), err
}

// addFile stores a file.
func (r *rig) addFile(f agent.File, text string) {
	r.Helper()
	n, err := NewFile(r.s, f, text)
	r.ok(err)
	r.ok(r.s.AddFile(r.ctx, n))
}

// has checks a file's content; "" means that the file must not exist.
func (r *rig) has(id, want string) {
	r.Helper()
	f, err := r.s.File(r.ctx, id)
	if want == "" {
		_, openErr := r.s.OpenFile(r.ctx, id)
		if !errors.Is(err, store.ErrNotFound) || !errors.Is(openErr, store.ErrNotFound) {
			r.Errorf("%s: got %+v, %v, %v, want ErrNotFound", id, f, err, openErr)
		}
		return
	}
	r.ok(err)
	if got, err := fileText(r.s, f); err != nil || got != want {
		r.Errorf("%s: got %q, %v, want %q", id, got, err, want)
	}
}

// files checks that files, their metadata, lists and sums can be read back.
func files(t *testing.T, r *rig) {
	r.session("sess_1")
	f := agent.File{ID: "file_1", Name: "sales.csv", MediaType: "text/csv", SHA256: "s", Owner: "ann",
		CreatedAt: r.clock.now()}
	r.addFile(f, "a,b\n1,2\n")
	r.addFile(agent.File{ID: "file_2", Owner: "bob"}, "")
	r.addFile(agent.File{ID: "file_3", Owner: "ann", SessionID: "sess_1"}, "third")
	d, err := r.s.NewDraft()
	r.ok(err)
	// longer than one piece of the stores that have pieces
	for _, text := range []string{"nobody's", strings.Repeat("x", 300<<10), "end"} {
		_, err = d.Write([]byte(text))
		r.ok(err)
	}
	text, err := io.ReadAll(io.NewSectionReader(d, 6, 1<<20))
	if n := len(text); err != nil || n != 300<<10+5 || string(text[:3]) != "'sx" || string(text[n-4:]) != "xend" {
		t.Errorf("of a draft %d bytes are read, %v", n, err)
	}
	d.Discard()
	d.Discard()
	r.everyWay(func() {
		r.has("file_1", "a,b\n1,2\n")
		r.has("file_3", "third")
		r.has("file_4", "")
		got, err := r.s.File(r.ctx, "file_1")
		if f.Bytes = 8; err != nil || got != f {
			t.Errorf("got %+v, %v, want %+v", got, err, f)
		}
		list, err := r.s.ListFiles(r.ctx, "ann", "", 10)
		if err != nil || len(list) != 2 || list[0].ID != "file_3" || list[1].ID != "file_1" {
			t.Errorf("list: got %+v, %v", list, err)
		}
		if list, err := r.s.ListFiles(r.ctx, "ann", "file_3",
			1); err != nil || len(list) != 1 || list[0].ID != "file_1" {
			t.Errorf("second page: got %+v, %v", list, err)
		}
		for _, c := range []struct {
			owner, session string
			own            int64
		}{{"ann", "", 8}, {"ann", "sess_1", 5}, {"bob", "", 0}} {
			if own, all, err := r.s.FileBytes(r.ctx, c.owner, c.session); err != nil || own != c.own || all != 13 {
				t.Errorf("bytes of %s %s: got %d of %d, %v, want %d of 13", c.owner, c.session, own, all, err, c.own)
			}
		}
	})
}

// filesGo checks that files disappear with their session, by deletion and by expiry. A reader of a deleted file can
// read it to the end.
func filesGo(t *testing.T, r *rig) {
	r.session("sess_1")
	r.addFile(agent.File{ID: "file_1"}, "kept")
	r.addFile(agent.File{ID: "file_2"}, "deleted")
	r.addFile(agent.File{ID: "file_3", ExpiresAt: r.clock.now().Add(time.Hour)}, "expires")
	r.addFile(agent.File{ID: "file_4", SessionID: "sess_1"}, "its session goes")
	open, err := r.s.OpenFile(r.ctx, "file_2")
	r.ok(err)
	defer open.Close()
	r.has("file_3", "expires")
	r.ok(r.s.DeleteFile(r.ctx, "file_2", nil))
	r.ok(r.s.DeleteSession(r.ctx, "sess_1", nil))
	late, err := NewFile(r.s, agent.File{ID: "file_5", SessionID: "sess_1"}, "came while its session went")
	r.ok(err)
	if err := r.s.AddFile(r.ctx, late); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a file of a session that is gone: got %v, want ErrNotFound", err)
	}
	r.clock.advance(time.Hour)
	r.has("file_3", "") // hidden even before Expire removes it
	_, err = r.s.Expire(r.ctx, r.clock.now())
	r.ok(err)
	if text, err := io.ReadAll(io.NewSectionReader(open, 0, 100)); err != nil || string(text) != "deleted" {
		t.Errorf("a reader of the deleted file got %q, %v", text, err)
	}
	r.everyWay(func() {
		r.has("file_1", "kept")
		for _, gone := range []string{"file_2", "file_3", "file_4", "file_5"} {
			r.has(gone, "")
			if err := r.s.DeleteFile(r.ctx, gone, nil); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("delete %s again: got %v, want ErrNotFound", gone, err)
			}
		}
		if _, all, err := r.s.FileBytes(r.ctx, "", ""); err != nil || all != 4 {
			t.Errorf("got %d bytes, %v, want those of the one that is left", all, err)
		}
	})
}

// repeatsWithFiles checks that a repeated commit keeps the files of the first one.
func repeatsWithFiles(t *testing.T, r *rig) {
	r.session("sess_1")
	commit := func() {
		c := NewCommit("sess_1", "call_repeated", r.clock.now())
		f, err := NewFile(r.s, agent.File{ID: "file_1", SessionID: "sess_1", CallID: "call_repeated"}, "made once")
		r.ok(err)
		c.Files, c.Repeated = []store.NewFile{f}, true
		r.commit(c)
		c.Files[0].Draft.Discard() // has no effect once it is a file
	}
	commit()
	r.everyWay(func() {
		commit()
		r.has("file_1", "made once")
		if own, all, err := r.s.FileBytes(r.ctx, "", "sess_1"); err != nil || own != 9 || all != 9 {
			t.Errorf("got %d of %d bytes, %v, want 9 of 9", own, all, err)
		}
		if n := len(r.records("sess_1")); n != 1 {
			t.Errorf("got %d records, want 1", n)
		}
	})
}

// fileBytes checks the sums after every way to add and remove files: calls, deletion, expiry, sessions and namespaces.
func fileBytes(t *testing.T, r *rig) {
	r.session("sess_1")
	r.session("sess_2")
	sums := func(what string, ann, bob, first, second, all int64) {
		r.Helper()
		r.everyWay(func() {
			for _, c := range []struct {
				owner, session string
				want           int64
			}{{"ann", "", ann}, {"bob", "", bob}, {"ann", "sess_1", first}, {"bob", "sess_1", first},
				{"bob", "sess_2", second}, {"nobody", "", 0}} {
				if own, total, err := r.s.FileBytes(r.ctx, c.owner,
					c.session); err != nil || own != c.want || total != all {
					t.Errorf("%s: bytes of %s %s: got %d of %d, %v, want %d of %d", what, c.owner, c.session, own,
						total, err, c.want, all)
				}
			}
		})
	}
	sums("nothing", 0, 0, 0, 0, 0)
	r.addFile(agent.File{ID: "file_1", Owner: "ann"}, "1")
	r.addFile(agent.File{ID: "file_2", Owner: "ann", ExpiresAt: r.clock.now().Add(time.Hour)}, "22")
	r.addFile(agent.File{ID: "file_3", Owner: "bob"}, "4444")
	r.addFile(agent.File{ID: "file_4", Owner: "ann", SessionID: "sess_1"}, "88888888")
	r.addFile(agent.File{ID: "file_5", Owner: "ann", Internal: true}, "sixteen letters.")
	r.addFile(agent.File{ID: "file_6", Owner: "bob"}, "")
	c := r.call("sess_2")
	for _, id := range []string{"file_7", "file_8"} {
		f, err := NewFile(r.s, agent.File{ID: id, Owner: "bob", SessionID: "sess_2", CallID: c.Record.CallID},
			"of a call")
		r.ok(err)
		c.Files = append(c.Files, f)
	}
	r.commit(c)
	there := r.s
	r.s = r.in("acme")
	r.session("sess_1")
	r.addFile(agent.File{ID: "file_1", Owner: "ann", SessionID: "sess_1"}, "of another namespace")
	r.s = there
	sums("added", 3, 4, 8, 18, 69)
	late, err := NewFile(r.s, agent.File{ID: "file_9", Owner: "ann", SessionID: "sess_none"}, "late")
	r.ok(err)
	if err := r.s.AddFile(r.ctx, late); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of no session: got %v, want ErrNotFound", err)
	}
	r.ok(r.s.DeleteFile(r.ctx, "file_1", nil))
	r.ok(r.s.DeleteFile(r.ctx, "file_6", nil))
	sums("deleted", 2, 4, 8, 18, 68)
	r.ok(r.s.DeleteSession(r.ctx, "sess_2", nil))
	sums("a session deleted", 2, 4, 8, 0, 50)
	r.clock.advance(time.Hour)
	_, err = r.s.Expire(r.ctx, r.clock.now())
	r.ok(err)
	sums("expired", 0, 4, 8, 0, 48)
	r.ok(r.store.EraseNamespace(r.ctx, "acme", nil))
	sums("a namespace erased", 0, 4, 8, 0, 28)
	r.ok(r.s.DeleteFile(r.ctx, "file_5", nil))
	sums("the internal one deleted", 0, 4, 8, 0, 12)
}

// filesOfCalls checks that a call's files are stored with the call or not at all.
func filesOfCalls(t *testing.T, r *rig) {
	r.session("sess_1")
	commit := func(session string, n int) error {
		c := r.call(session)
		f, err := NewFile(r.s, agent.File{ID: fmt.Sprint("file_", n), SessionID: session, CallID: c.Record.CallID},
			fmt.Sprint("made ", n))
		r.ok(err)
		c.Files = []store.NewFile{f}
		return r.s.CommitCall(r.ctx, c)
	}
	r.ok(commit("sess_1", 1))
	if err := commit("sess_none", 2); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a call without a session: got %v", err)
	}
	r.everyWay(func() {
		r.has("file_1", "made 1")
		r.has("file_2", "")
	})
}
