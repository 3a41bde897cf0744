package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// An export that was taken during calls can be imported. The imported store keeps all promises and has at least what
// was acknowledged before the export began.
func TestExportImport(t *testing.T) {
	t.Parallel()
	dir, _ := filled(t)
	o := testOptions(t)
	o.LogSegment = 4 << 10
	s := open(t, dir, o)
	ctx := context.Background()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for w := range 3 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				c := storetest.NewCommit("sess_1", fmt.Sprintf("call_during_%d_%d", w, n), simStart)
				c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add", At: simStart,
					Result: agent.ClassOK}}
				if err := s.CommitCall(ctx, c); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var archive bytes.Buffer
	for range 3 { // the files are written meanwhile
		archive.Reset()
		if err := s.Export(ctx, &archive, ""); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	into := filepath.Join(t.TempDir(), "new")
	if _, err := Import(ctx, into, bytes.NewReader(archive.Bytes()), testOptions(t), nil); err != nil {
		t.Fatal(err)
	}
	r, err := Verify(ctx, into, testOptions(t))
	if err != nil || len(r.Problems) > 0 || r.Journal > 0 {
		t.Fatalf("got %+v, %v", r, err)
	}
	copied := open(t, into, testOptions(t))
	a, err := copied.Artifact(ctx, "calculator", "add")
	if err != nil {
		t.Fatal(err)
	}
	before := int64(0)
	for _, rec := range storetest.Records(t, copied, "sess_1") {
		if strings.HasPrefix(rec.CallID, "call_during") {
			before++
		}
	}
	list, err := copied.ListCalls(ctx, store.CallQuery{Limit: 1 << 20, SessionID: "sess_1"})
	if err != nil || int64(len(list)) != before+12 {
		t.Errorf("got %d log entries, %v, want %d", len(list), err, before+12)
	}
	original, err := s.Artifact(ctx, "calculator", "add")
	if err != nil || a.SuccessCount > original.SuccessCount || a.SuccessCount < 1 {
		t.Errorf("got %d successes of %d, %v", a.SuccessCount, original.SuccessCount, err)
	}
	if _, err := Import(ctx, into, bytes.NewReader(archive.Bytes()), testOptions(t),
		nil); !errors.Is(err, store.ErrExists) {
		t.Errorf("into a directory in use: got %v, want ErrExists", err)
	}
	whole := archive.Bytes()
	for name, bad := range map[string][]byte{"cut off": whole[:len(whole)/2], "no archive": []byte("hello"),
		"empty": nil} {
		into := filepath.Join(t.TempDir(), "bad")
		if _, err := Import(ctx, into, bytes.NewReader(bad), testOptions(t), nil); err == nil {
			t.Errorf("%s: imported without an error", name)
		}
		if left := tree(t, into); len(left) > 0 {
			t.Errorf("%s: left %d files", name, len(left))
		}
	}
}

func TestExportOfAStoppedStoreIsTheStore(t *testing.T) {
	t.Parallel()
	dir, dump := filled(t)
	s := open(t, dir, testOptions(t))
	ctx := context.Background()
	var archive bytes.Buffer
	if err := s.Export(ctx, &archive, ""); err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(t.TempDir(), "new")
	if _, err := Import(ctx, into, &archive, testOptions(t), nil); err != nil {
		t.Fatal(err)
	}
	if got := storetest.Dump(t, open(t, into, testOptions(t)), simStart); got != dump {
		t.Error(storetest.Difference(got, dump))
	}
}
